#!/usr/bin/env python3
"""package_test.py TARBALL FAKE_RANK: the release tarball on a root that holds it, glibc and nothing else. Every command
that needs no rank answers there, and a whole sweep runs with fake ranks; unpacked twice, it works at both places."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

TARBALL, FAKE_RANK = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
SKIP = 77
GLIBC = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec))\.so")
GRID = """name: bare
model: {family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}
base: {hardware: cpu, nodes: 1, gpus_per_node: 1}
grid: {seq_len: [64, 65]}
derive: {fake: "seq_len - 64", fake_step_ms: "1"}
measure: {warmup_steps: 1, steps: 2}
"""


def needed(program):
    said = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", said)


def glibc_files():
    """name -> path of what the loader of this machine finds for the programs, glibc's part of it."""
    said = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    loader = re.search(r"^\s*(/\S*ld-linux\S*)", said, re.M).group(1)
    folder = pathlib.Path(re.search(r"libc\.so\.6 => (\S+)", said).group(1)).parent
    return loader, {path.name: path for path in folder.iterdir() if GLIBC.match(path.name)}


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-bare-")
        cls.root = pathlib.Path(cls.temporary.name)
        for name in ("proc", "dev", "tmp", "home", "opt", "srv/other", "lib"):
            (cls.root / name).mkdir(parents=True)
        loader, files = glibc_files()
        (cls.root / loader.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(loader, cls.root / loader.lstrip("/"))
        for name, path in files.items():
            shutil.copy(path, cls.root / "lib" / name)
        for place in ("opt", "srv/other"):
            with tarfile.open(TARBALL) as tar:
                tar.extractall(cls.root / place)
        cls.name = next((cls.root / "opt").iterdir()).name
        shutil.copy(FAKE_RANK, cls.root / "opt" / cls.name / "bin" / "fake_rank")
        (cls.root / "home" / "grid.yaml").write_text(GRID)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def inside(self, *words, code=0, place="opt"):
        """Runs a program of the tarball with this root as /, and a /proc and /dev of its own."""
        script = ('mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev" && mkdir "$1/dev/shm" && for each in null zero urandom; do '
                  ': >"$1/dev/$each" && mount --bind "/dev/$each" "$1/dev/$each" || exit 99; done && root=$1 && shift && '
                  'chroot=$(command -v chroot) && exec env -i HOME=/home PATH=/nowhere LANG=C "$chroot" "$root" "$@"')
        own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        command = ["unshare", *own, "--mount", "--pid", "--fork", "--kill-child=KILL", "sh", "-c", script, "sh", str(self.root),
                   f"/{place}/{self.name}/bin/{words[0]}", *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def test_the_agent_needs_glibc_alone(self):
        for name in needed(self.root / "opt" / self.name / "bin" / "sweep-agent"):
            self.assertRegex(name, GLIBC)

    def test_what_sweep_needs_beyond_glibc_comes_with_it(self):
        folder = self.root / "opt" / self.name
        for name in needed(folder / "bin" / "sweep"):
            self.assertTrue(GLIBC.match(name) or (folder / "lib" / name).exists(), name)
        for name in ("libtorch", "libcuda", "libstdc++", "libfmt", "libspdlog", "libsqlite3", "libsodium"):
            self.assertFalse(list((folder / "lib").glob(f"{name}*")), f"{name} is linked in, or not there at all")

    def test_it_answers_at_two_places(self):
        for place in ("opt", "srv/other"):
            self.assertRegex(self.inside("sweep", "--version", place=place), r"^\d+\.\d+\.\d+ \(")
            self.assertIn("llama3-8b", self.inside("sweep", "models", place=place))
            self.assertIn("admitted", self.inside("sweep", "plan", f"/{place}/{self.name}/share/sweep/sweeps/llama-8b.yaml", place=place))
            self.assertIn('"version"', self.inside("sweep-agent", "--probe", place=place))

    def test_a_sweep_runs(self):
        self.inside("sweep", "run", "/home/grid.yaml", "--db", "/home/r.db", "--slots", "2", "--rank", f"/opt/{self.name}/bin/fake_rank")
        said = self.inside("sweep", "query", "select outcome from results order by seq_len", "--db", "/home/r.db", "--json")
        self.assertEqual(re.findall(r'"outcome": ?"(\w+)"', said), ["ok", "oom"], said)


def can_unshare():
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run(["unshare", *own, "--mount", "--pid", "--fork", "true"], capture_output=True).returncode == 0


if __name__ == "__main__":
    if not can_unshare():
        print("skipped: no namespaces of one's own on this machine")
        sys.exit(SKIP)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
