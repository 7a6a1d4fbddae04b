#!/usr/bin/env python3
"""doctor_test.py BIN [CASE...]: `sweep doctor --on ssh|slurm` on real sshd and a real Slurm of this machine: all good, and
each kind of row made bad in turn, with the way out in its text and exit code 1."""
import os
import pathlib
import subprocess
import sys
import unittest

import sweep_folder
from cluster import agents, slurm, sshd

BIN = pathlib.Path(sys.argv[1]).resolve()
HEAD = """name: where
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256}}
base: {{hardware: cpu}}
grid: {{seq_len: [64]}}
launch: {{{launch}}}
"""


class DoctorTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o711)
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.folder), "OMP_NUM_THREADS": "1",
                            "SWEEP_SITE": str(self.folder / "none.yaml"), agents.MARK: str(self.folder)}

    def doctor(self, launch, *words, code=0):
        grid = self.folder / "grid.yaml"
        grid.write_text(HEAD.format(launch=launch))
        on = launch.split(":")[0]
        said = subprocess.run([BIN / "sweep", "doctor", "--on", on, "--grid", grid, "--db", self.folder / "r.db", *map(str, words)],
                              env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(said.returncode, code, f"{said.stdout}\n{said.stderr}")
        self.assertFalse(list(self.folder.glob("sweep-doctor-*")), "its own database is gone")
        return said.stdout

    def bad(self, said):
        return "\n".join(line for line in said.splitlines() if line.startswith("bad"))

    def changed_agent(self, name, script):
        """An agent whose probe says something else; all other words go to the real one."""
        path = self.folder / name
        path.write_text(f"""#!/bin/sh
if [ "$1" = --probe ]; then {BIN}/sweep-agent "$@" | sed -e '{script}'; else exec {BIN}/sweep-agent "$@"; fi
""")
        path.chmod(0o755)
        return path


class SshTest(DoctorTest):
    def setUp(self):
        if sshd.missing():
            self.skipTest(f"this machine lacks {', '.join(sshd.missing())}")
        super().setUp()
        self.cluster = sshd.Cluster(self.folder / "sshd", hosts=2, environment=self.environment,
                                    session={agents.MARK: self.folder}).start()
        self.addCleanup(self.cluster.stop)

    def ssh(self, second="", **more):
        """launch.ssh with two hosts; `second`: what is said of the second one beside its name."""
        first, other = self.cluster.hosts
        words = {"hosts": f"[{first}, {{host: {other}{second}}}]", "config": self.cluster.config, "directory": self.folder / "far",
                 "lease_seconds": 3, **more}
        return "ssh: {" + ", ".join(f"{key}: {value}" for key, value in words.items()) + "}"

    def test_all_is_well(self):
        said = self.doctor(self.ssh())
        self.assertEqual(self.bad(said), "", said)
        self.assertRegex(said, r"ok +loop +2 nodes trained equally")
        self.assertRegex(said, r"ok +ports +the agents of 2 nodes met")

    def test_one_fault_after_the_other(self):
        other = self.cluster.hosts[1]
        old = self.changed_agent("old", r's/"version":"[^"]*"/"version":"0.0.1"/')
        late = self.changed_agent("late", r's/"unix_ns":[0-9]*/"unix_ns":1/')
        for second, row, way in [(f", agent: {old}", "version", "install the same build"), (f", agent: {late}", "clock", "chrony"),
                                 (", hardware: h100-sxm-80gb", "GPUs", "no GPU answers"),
                                 (", rank: /no/such/rank", "rank program", "scripts/deploy"),
                                 (", agent: /no/such/agent", "agent", "does not run")]:
            with self.subTest(row=row):
                bad = self.bad(self.doctor(self.ssh(second), code=1))
                self.assertRegex(bad, rf"bad +{other} {row} .*{way}")
        with self.subTest(row="folder"):
            self.assertRegex(self.bad(self.doctor(self.ssh(directory="/proc/none"), code=1)), r"folder .*name another folder with directory")
        with self.subTest(row="ports"):
            self.assertRegex(self.bad(self.doctor(self.ssh(interface="nosuch0"), code=1)), r"ports .*nosuch0")
        with self.subTest(row="loop"):
            self.assertRegex(self.bad(self.doctor(self.ssh(), "--rank", BIN / "fake_rank", code=1)), r"loop .*did not compute")
        with self.subTest(row="reach"):
            self.cluster.stop_host(other)
            bad = self.bad(self.doctor(self.ssh(), code=1))
            self.assertRegex(bad, rf"bad +{other} reach .*`ssh -F {self.cluster.config} {other} true`")


class SlurmTest(DoctorTest):
    def setUp(self):
        if slurm.missing():
            self.skipTest(f"this machine lacks {', '.join(slurm.missing())}")
        super().setUp()

    def slurm(self, **more):
        words = {"partition": "main", "max_nodes": 2, "poll_seconds": 1, **more}
        return "slurm: {" + ", ".join(f"{key}: {value}" for key, value in words.items()) + "}"

    def test_cluster(self):
        with slurm.Cluster(self.folder / "slurm", nodes=2) as cluster:
            self.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
            said = self.doctor(self.slurm())
            self.assertEqual(self.bad(said), "", said)
            self.assertRegex(said, r"ok +loop +2 nodes trained equally")
            for words, options, row, way in [
                    ({"partition": "nosuch"}, [], "partition nosuch", "sinfo -s"),
                    ({"extra": "[\"--begin=nonsense\"]"}, [], "submission", "--sbatch"),
                    ({"max_nodes": 3}, ["--nodes", "3"], "partition main", "sinfo -R"),
                    ({}, ["--rank", "/no/such/rank"], "rank program", "scripts/deploy"),
                    ({}, ["--hardware", "h100-sxm-80gb"], "GPUs", "gpus_per_node"),
                    ({}, ["--agent", self.changed_agent("far", 's/"writable"/"absent"/')], "folder", "all nodes share")]:
                with self.subTest(row=row):
                    self.assertRegex(self.bad(self.doctor(self.slurm(**words), *options, code=1)), rf"{row} .*{way}")
            self.assertFalse(cluster.drained())
        with self.subTest(row="slurmctld"):
            self.assertRegex(self.bad(self.doctor(self.slurm(), code=1)), r"slurmctld .*sbatch works")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
