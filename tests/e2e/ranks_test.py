#!/usr/bin/env python3
"""ranks_test.py BIN_DIR: real training ranks over two nodes, by Slurm and over ssh. The ranks of a trial meet through
the agents and talk by Gloo; what they compute and hold is what the same ranks compute and hold on one machine.
As root every Slurm node has its own network, host name and process ids; SWEEP_CLUSTER_MODE=plain: it has not."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import database
from cluster import agents, daemons, slurm, sshd

BIN = pathlib.Path(sys.argv[1]).resolve()
MODE = os.environ.get("SWEEP_CLUSTER_MODE") or ("netns" if os.geteuid() == 0 else "plain")

# Four ranks: tensor parallel inside a node, data parallel (with ZeRO 0 and 1) or pipeline stages between the nodes.
GRID = """name: {name}
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 2, intermediate_size: 176, vocab_size: 256}}
base: {{hardware: cpu, precision: fp32, seq_len: 32, global_batch_size: 4, micro_batch_size: 1, tp: 2, {shape}}}
grid: {{pp: [1, 2], zero: [0, 1]}}
where: ["pp == 1 or zero == 0"]
measure: {{warmup_steps: 1, steps: 3}}
{launch}
"""
TWO_NODES, ONE_NODE = "nodes: 2, gpus_per_node: 2", "nodes: 1, gpus_per_node: 4"


class RanksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-ranks-")
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.folder.chmod(0o711)
        cls.environment = {**os.environ, agents.MARK: str(cls.folder), "SWEEP_SITE": str(cls.folder / "no-site.yaml"),
                           "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        cls.here = cls.sweep("here", ONE_NODE, "", cls.environment, "--slots", "4")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def sweep(cls, name, shape, launch, environment, *words, inside=()):
        """Runs it; (pp, zero) -> (loss of the first and the last step, peak bytes of every rank)."""
        grid, db = cls.folder / f"{name}.yaml", cls.folder / f"{name}.db"
        grid.write_text(GRID.format(name=name, shape=shape, launch=launch))
        done = subprocess.run([*inside, BIN / "sweep", "run", grid, "--db", db, *words], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=240)
        logs = "\n".join(f"== {path}\n{path.read_text(errors='replace')[-1500:]}" for path in pathlib.Path(f"{db}.spool").rglob("*.log"))
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{logs}"
        database.check(db)
        found = {}
        for trial, pp, zero, outcome, nodes, first, last in database.rows(
                db, "select trial, pp, zero, outcome, nodes, loss_first, loss_last from results where outcome <> 'pruned'"):
            assert outcome == "ok", (trial, outcome, logs)
            ranks = database.rows(db, "select rank, peak_allocated_bytes, effective from rank_record where attempt = (select max(a.id) from attempt a "
                                      "join plan_entry p on p.key = a.entry join trial t on t.key = p.trial "
                                      f"where t.id = '{trial}') order by rank")
            assert {json.loads(effective)["backend"] for _, _, effective in ranks} == {"gloo" if nodes > 1 else "shm"}, ranks
            found[pp, zero] = (first, last, {rank: peak for rank, peak, _ in ranks})
        return found

    def check(self, found):
        self.assertEqual(sorted(found), [(1, 0), (1, 1), (2, 0)])
        for layout, (first, last, peaks) in found.items():
            self.assertLess(last, first, f"{layout}: the loss falls")
            for there, here in zip((first, last), self.here[layout][:2]):
                self.assertAlmostEqual(there, here, delta=1e-5 * here, msg=f"{layout}: the loss on one machine")
            self.assertEqual(sorted(peaks), [0, 1, 2, 3])
            for rank, here in self.here[layout][2].items():  # Gloo's thread may still hold a reduced bucket when the next one is made
                self.assertIn(peaks[rank] - here, range(here // 4), f"{layout}: peak bytes of rank {rank} on one machine")

    def test_slurm(self):
        if slurm.missing():
            self.skipTest(f"this machine lacks {', '.join(slurm.missing())}")
        with slurm.Cluster(self.folder / "slurm", nodes=2, mode=MODE) as cluster:
            environment = {**self.environment, **cluster.environment, agents.MARK: str(cluster.folder)}
            self.check(self.sweep("slurm", TWO_NODES, "launch: {slurm: {partition: main, max_nodes: 2, poll_seconds: 1}}", environment,
                                  inside=cluster.inside()))
            daemons.wait_for(lambda: set(cluster.states().values()) == {"idle"}, 20, f"idle nodes: {cluster.states()}")
            self.assertFalse(cluster.drained())

    def test_ssh(self):
        if sshd.missing():
            self.skipTest(f"this machine lacks {', '.join(sshd.missing())}")
        with sshd.Cluster(self.folder / "sshd", hosts=2, environment=self.environment, session={
                agents.MARK: self.folder, "OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1}) as cluster:
            self.check(self.sweep("ssh", TWO_NODES, f"launch: {{ssh: {{hosts: [{', '.join(cluster.hosts)}], config: {cluster.config}, "
                                                    f"directory: {self.folder}/far, rank: {BIN}/sweep-rank}}}}", self.environment))
            own = {daemon.pid for daemon in cluster.daemons.values()}
            agents.wait_for(lambda: not set(agents.marked(self.folder)) - own, 40, f"nothing left: {agents.marked(self.folder)}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
