#!/usr/bin/env python3
"""deploy_test.py BIN FAKE_RANK REPOSITORY: scripts/deploy over real sshd, with a rank program that has a library of its own
beside it: it arrives whole and starts without what it was built beside, a second time nothing is sent, another version, a damaged or
foreign folder is refused and leaves what was there; `sweep run --on ssh` runs with what was deployed; and nodes of a Slurm
allocation get it too."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from cluster import slurm, sshd

BIN, FAKE_RANK, REPOSITORY = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
SKIP = 77

# A rank program in two parts: the program, linked to a library that lies in a folder of its own, as LibTorch's does.
LIBRARY = 'extern "C" const char* version() { return "%s"; }'
PROGRAM = """#include <cstdio>
#include <cstring>
#include <unistd.h>
extern "C" const char* version();
int main(int count, char** words) {
  if (count > 1 && !std::strcmp(words[1], "facts")) return std::printf("{\\"version\\":\\"%s\\"}\\n", version()) < 0;
  ::execv(FAKE_RANK, words);
  return 127;
}
"""


def compile_rank(folder, version):
    """The program's path; its library lies in wheel/, which is moved away after deploying."""
    wheel, programs = folder / "wheel", folder / "bin"
    for each in (wheel, programs):
        each.mkdir(parents=True, exist_ok=True)
    (folder / "library.cpp").write_text(LIBRARY % version)
    (folder / "program.cpp").write_text(PROGRAM)
    subprocess.run(["c++", "-shared", "-fPIC", folder / "library.cpp", "-o", wheel / "libstandin.so"], check=True)
    subprocess.run(["c++", f'-DFAKE_RANK="{FAKE_RANK}"', folder / "program.cpp", "-o", programs / "sweep-rank", f"-L{wheel}", "-lstandin",
                    f"-Wl,-rpath,{wheel}:$ORIGIN/../lib"], check=True)
    return programs / "sweep-rank"


class DeployTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-deploy-")
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.folder.chmod(0o711)
        probe = subprocess.run([BIN / "sweep-agent", "--probe"], capture_output=True, text=True, check=True).stdout
        cls.version = json.loads(probe)["version"]
        cls.rank = compile_rank(cls.folder / "ours", cls.version)
        cls.cluster = sshd.Cluster(cls.folder / "sshd", hosts=2).start()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def deploy(self, to, code=0, rank=None, hosts=None):
        command = [REPOSITORY / "scripts" / "deploy", "--hosts", ",".join(hosts or self.cluster.hosts[:1]), "--to", to, "--rank",
                   rank or self.rank, "--agent", BIN / "sweep-agent", "--ssh-config", self.cluster.config]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def version_at(self, to):
        said = subprocess.run([to / "bin" / "sweep-rank", "facts"], capture_output=True, text=True)
        return json.loads(said.stdout)["version"] if said.returncode == 0 else said.stderr

    def test_it_arrives_whole_and_only_once(self):
        to = self.folder / "whole"
        self.assertIn("host1: brought", self.deploy(to))
        self.assertIn("host1: there already", self.deploy(to))
        wheel = self.rank.parent.parent / "wheel"
        wheel.rename(wheel.with_name("away"))
        try:
            self.assertEqual(self.version_at(to), self.version)
        finally:
            wheel.with_name("away").rename(wheel)
        (to / ".deployed").write_text("an older one")
        self.assertIn("host1: brought", self.deploy(to))

    def test_two_hosts_with_one_disk_get_it_once(self):
        said = self.deploy(self.folder / "shared", hosts=self.cluster.hosts)
        self.assertEqual((said.count("brought"), said.count("there already")), (1, 1), said)

    def test_another_version_is_refused_here(self):
        other = compile_rank(self.folder / "other", "0.0.1")
        self.assertIn("0.0.1", self.deploy(self.folder / "mixed", code=2, rank=other))
        self.assertFalse((self.folder / "mixed").exists())

    def test_what_does_not_start_there_leaves_what_was_there(self):
        to = self.folder / "kept"
        self.deploy(to)
        wrong = self.folder / "wrong"
        wrong.mkdir()
        # It tells its version only where it was built.
        (wrong / "sweep-rank").write_text(f"#!/bin/sh\ncase $0 in {wrong}/*) echo '{{\"version\":\"{self.version}\"}}';; *) exit 1;; esac\n")
        (wrong / "sweep-rank").chmod(0o755)
        self.assertIn("was sent", self.deploy(to, code=1, rank=wrong / "sweep-rank"))
        self.assertEqual(self.version_at(to), self.version)
        self.assertEqual([path.name for path in self.folder.glob("kept.*") if path.suffix != ".lock"], [])

    def test_a_foreign_folder_is_not_touched(self):
        to = self.folder / "foreign"
        to.mkdir()
        (to / "thesis.tex").write_text("years of work")
        self.assertIn("not made by deploy", self.deploy(to, code=1))
        self.assertEqual([path.name for path in to.iterdir()], ["thesis.tex"])

    def test_an_unknown_host_fails_alone(self):
        said = self.deploy(self.folder / "partly", code=1, hosts=["nowhere.invalid", self.cluster.hosts[0]])
        self.assertIn("host1: brought", said)
        self.assertIn("nowhere.invalid: failed", said)

    def test_nodes_of_a_slurm_allocation_get_it(self):
        if slurm.missing():
            self.skipTest(f"this machine lacks {', '.join(slurm.missing())}")
        to = self.folder / "local"
        with slurm.Cluster(self.folder / "slurm", nodes=2) as cluster:
            job = cluster.run("bash", "-c", "salloc --no-shell -N2 -J standing 2>&1").split()[-1]
            command = [REPOSITORY / "scripts" / "deploy", "--job", job, "--to", to, "--rank", self.rank, "--agent", BIN / "sweep-agent"]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  env=cluster.environment)
            cluster.run("scancel", job)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = sorted(line.split(": ", 1)[1] for line in done.stderr.splitlines() if line[:3] in ("0: ", "1: "))
        self.assertEqual(said, ["brought", "there already"], done.stderr)  # both nodes are this machine
        self.assertEqual(self.version_at(to), self.version)
        self.assertEqual(list(self.folder.glob("local.parcel.*")), [])

    def test_a_sweep_runs_with_it(self):
        to, grid = self.folder / "run", self.folder / "grid.yaml"
        self.deploy(to)
        grid.write_text(f"""name: deployed
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, nodes: 1, gpus_per_node: 1}}
grid: {{seq_len: [64, 65]}}
derive: {{fake: "0", fake_step_ms: "1"}}
measure: {{warmup_steps: 1, steps: 2}}
launch: {{ssh: {{hosts: [host1], config: {self.cluster.config}, directory: {self.folder}/far, agent: {to}/bin/sweep-agent, rank: {to}/bin/sweep-rank}}}}
""")
        done = subprocess.run([BIN / "sweep", "run", grid, "--db", self.folder / "r.db", "--rank", FAKE_RANK], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, "SWEEP_SITE": str(self.folder / "none.yaml")}, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    lacking = [*sshd.missing(), *[name for name in ("c++", "flock", "sha256sum") if shutil.which(name) is None]]
    if lacking:
        print("skipped: this machine lacks " + ", ".join(lacking))
        sys.exit(SKIP)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
