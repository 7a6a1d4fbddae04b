#!/usr/bin/env python3
"""gpu_bundle_test.py BUILD REPOSITORY: the folder that scripts/gpu_bundle makes, in a root of its own: the system's programs, a Python
with torch at another place, the folder, and nothing of the repository. Every step of gpu_check runs there on phantom GPUs."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD, REPO = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
SKIP, NO_GPU = 77, 77
GLIBC = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec))\.so")
MOST_BYTES = 60 << 20
# Mounts under $1, then the command with $1 as /: read-only what the system has, own /tmp, /home, /proc, /dev.
ENTER = """
root=$1 prefix=$2 packages=$3 venv=$4; shift 4
for folder in usr etc; do mkdir -p "$root/$folder"; mount --bind -o ro "/$folder" "$root/$folder" || exit 99; done
for link in bin lib lib64 sbin; do [ -e "$root/$link" ] || cp -P "/$link" "$root/$link" || exit 99; done
case $prefix in /usr*) ;; *) mkdir -p "$root$prefix"; mount --bind -o ro "$prefix" "$root$prefix" || exit 99 ;; esac
mkdir -p "$root$packages"; mount --bind -o ro "$venv" "$root$packages" || exit 99
mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/dev" && mkdir "$root/dev/shm" && ln -s /proc/self/fd "$root/dev/fd" || exit 99
for each in null zero urandom random; do : >"$root/dev/$each"; mount --bind "/dev/$each" "$root/dev/$each" || exit 99; done
chroot=$(command -v chroot)
cd "$root" && exec env -i HOME=/home PATH=/opt/torch/bin:/usr/bin:/bin LANG=C.UTF-8 OMP_NUM_THREADS=1 "$chroot" "$root" "$@"
"""


def needed(program):
    said = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", said)


def torch_folder():
    found = importlib.util.find_spec("torch")
    return pathlib.Path(found.submodule_search_locations[0]) if found else None


class GpuBundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-bundle-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        for name in ("proc", "dev", "tmp", "home", "opt/torch/bin"):
            (cls.root / name).mkdir(parents=True)
        cls.bundle = cls.root / "opt" / "check"
        subprocess.run([REPO / "scripts" / "gpu_bundle", cls.bundle, "--build", BUILD], check=True)
        cls.site = torch_folder().parent
        cls.packages = f"/opt/torch/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        interpreter = pathlib.Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        (cls.root / "opt/torch/bin/python3").symlink_to(interpreter)
        (cls.root / "opt/torch/pyvenv.cfg").write_text(f"home = {interpreter.parent}\n")

    def inside(self, *words):
        """gpu_check in that root: its exit code and what it said."""
        own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        command = ["unshare", *own, "--mount", "--pid", "--fork", "--kill-child=KILL", "sh", "-c", ENTER, "sh", str(self.root),
                   str(pathlib.Path(sys.base_prefix).resolve()), self.packages, str(self.site),
                   "/opt/torch/bin/python3", "/opt/check/scripts/gpu_check", *words]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1500)
        self.assertNotEqual(done.returncode, 99, done.stderr)
        return done.returncode, done.stdout + done.stderr

    def records(self, out):
        return {record["step"]: record for record in json.loads((self.root / out / "gpu-check.json").read_text())}

    def test_it_is_small_and_holds_no_torch(self):
        files = [path for path in self.bundle.rglob("*") if path.is_file() and not path.is_symlink()]
        self.assertLessEqual(sum(path.stat().st_size for path in files), MOST_BYTES)
        self.assertEqual([path for path in files if re.match("lib(torch|c10|nccl|cudart|cublas)", path.name)], [])
        self.assertEqual(len((self.bundle / "README").read_text().splitlines()), 3)

    def test_what_its_programs_need_is_there(self):
        """Beside glibc and what comes with torch: in the folder itself, whatever this machine has installed."""
        wheels = {path.name for folder in (self.site / "torch" / "lib", *(self.site / "nvidia").glob("*/lib")) for path in folder.iterdir()}
        there = {path.name for path in (self.bundle / "lib").iterdir()}
        for program in [*(self.bundle / "bin").iterdir(), *(self.bundle / "lib").iterdir(), *(self.bundle / "phantom").iterdir()]:
            lacking = [name for name in needed(program) if not GLIBC.match(name) and name not in there | wheels]
            lacking = [name for name in lacking if not (self.bundle / "phantom" / name).exists()]
            self.assertEqual(lacking, [], program)

    def test_without_a_gpu_it_says_so(self):
        code, said = self.inside("--out", "/home/none")
        self.assertEqual(code, NO_GPU, said)
        self.assertIn("WRONG: GPU", said)
        self.assertEqual(self.inside("--list")[0], 0)

    def test_every_step_on_phantoms(self):
        code, said = self.inside("--phantom", "--total", "2000", "--seconds", "900", "--out", "/home/all")
        records = self.records("home/all")
        self.assertEqual(sorted(records), list(range(1, 10)), said[-3000:])
        for number, record in records.items():
            wrong = [row for row in record["rows"] if row["met"] is False]
            self.assertEqual((record["state"], record["met"], record["phantom"], wrong), ("done", True, True, []), (number, record["notes"]))
        self.assertEqual(code, 0, said[-3000:])
        summary = (self.root / "home/all/gpu-check.md").read_text()
        self.assertEqual(summary.count("Phantom GPUs: no measurement."), 9)
        self.assertEqual([row["who"] for row in records[8]["rows"]], ["sweep", "FSDP2, eager", "FSDP2, compiled", "autocast, compiled blocks", "sweep"])
        self.assertGreaterEqual(len(records[2]["rows"]), 40)

    def test_a_step_that_is_cut_keeps_what_it_has(self):
        code, said = self.inside("--phantom", "--step", "7", "--seconds", "8", "--out", "/home/cut")
        record = self.records("home/cut")[7]
        self.assertEqual((code, record["state"]), (1, "cut"), said[-2000:])
        self.assertTrue(record["rows"], said[-2000:])


def missing():
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *own, "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        return "no namespaces of one's own on this machine"
    return None if torch_folder() else f"{sys.executable} has no torch"


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}")
        sys.exit(SKIP)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
