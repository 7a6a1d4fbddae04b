#!/usr/bin/env python3
"""selftest_test.py BIN [CASE...]: `sweep selftest` with real ranks: every strategy on this machine over shared memory, over
two nodes of a real Slurm with Gloo, and ranks that prove nothing must be found out."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import schemas
import sweep_folder
from cluster import slurm

BIN = pathlib.Path(sys.argv[1]).resolve()
GRID = """name: where
model: {family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256}
base: {hardware: cpu}
grid: {seq_len: [64]}
launch: {slurm: {partition: main, max_nodes: 2, poll_seconds: 1}}
"""


class SelftestTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.folder), "OMP_NUM_THREADS": "1",
                            "SWEEP_SITE": str(self.folder / "none.yaml")}

    def sweep(self, *words, code=0, before=(), environment=None):
        command = [*before, str(BIN / "sweep"), *map(str, words)]
        said = subprocess.run(command, env={**self.environment, **(environment or {})}, capture_output=True, text=True,
                              timeout=900, check=False)
        self.assertEqual(said.returncode, code, f"{said.stdout}\n{said.stderr}")
        return said.stdout

    def rows(self, said):
        document = json.loads(said)
        if schemas.can_be_checked():
            schemas.check("selftest", document)
        return {row["strategy"]: row for row in document["strategies"]}

    def test_this_machine(self):
        found = self.rows(self.sweep("selftest", "--json", "--quiet"))
        self.assertGreaterEqual(len(found), 20)
        for name, row in found.items():
            exact = name not in ("ep_learned", "ep_skewed")  # the tokens' choices decide their rows
            self.assertEqual((row["result"], row["backend"], row["bytes_exact"]), ("passed", "shm", exact), row)
            if "bf16" not in name:
                self.assertLess(max(row["loss"], row["gradient"], row["parameter"]), 1e-5, row)
        table = self.sweep("doctor")
        self.assertEqual(table.count("passed here"), len(found), table)
        self.assertIn("never run", table)

    def test_what_proves_nothing_fails(self):
        found = self.rows(self.sweep("selftest", "--json", "--quiet", "--only", "dp,tp", "--rank", BIN / "fake_rank", code=1))
        self.assertEqual({row["result"] for row in found.values()}, {"failed"}, found)
        self.assertIn("FAILED here", self.sweep("doctor"))
        self.sweep("selftest", "--only", "nonsense", code=2)
        self.sweep("selftest", "--backend", "shm", "--nodes", "2", code=2)

    def test_two_nodes_of_slurm(self):
        if slurm.missing():
            self.skipTest(f"this machine lacks {', '.join(slurm.missing())}")
        grid = self.folder / "grid.yaml"
        grid.write_text(GRID)
        with slurm.Cluster(self.folder / "slurm", nodes=2) as cluster:
            said = self.sweep("selftest", "--json", "--quiet", "--on", "slurm", "--grid", grid, "--nodes", "2", before=cluster.inside(),
                              environment={key: cluster.environment[key] for key in ("SLURM_CONF",)})
        found = self.rows(said)
        alone = {name for name in found if name.startswith("one_rank")}
        self.assertEqual({found.pop(name)["result"] for name in alone}, {"not run"})
        self.assertEqual({(row["result"], row["backend"]) for row in found.values()}, {("passed", "gloo")}, found)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
