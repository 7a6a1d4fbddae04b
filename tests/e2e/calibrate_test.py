#!/usr/bin/env python3
"""calibrate_test.py BIN [CASE...]: `sweep calibrate` with two real ranks over shared memory and Gloo: every result right, the
profile stored and used; a rank that is killed or stopped ends its attempt, and no profile is stored. No time is asserted."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import unittest

import processes
import schemas
import sweep_folder

BIN = pathlib.Path(sys.argv[1]).resolve()
KINDS = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"}
FACTOR = {"all_reduce": 1.0, "all_gather": 0.5, "reduce_scatter": 0.5, "all_to_all": 0.5, "send": 1.0}  # factors of two ranks
STEP = 5  # Phase::kStep of schema/progress.h
GRID = """name: small
model: {family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 176, vocab_size: 256}
base: {hardware: cpu, gpus_per_node: 2, global_batch_size: 4, seq_len: 64, dp: 2}
grid: {micro_batch_size: [1, 2]}
"""


class CalibrateTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        environment, self.mark = processes.marked_environment()
        self.environment = {**environment, "XDG_STATE_HOME": str(self.folder), "OMP_NUM_THREADS": "1",
                            "SWEEP_SITE": str(self.folder / "none.yaml")}

    def start(self, *words):
        return subprocess.Popen([str(BIN / "sweep"), *map(str, words)], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def sweep(self, *words, code=0):
        run = self.start(*words)
        out, err = run.communicate(timeout=900)
        self.assertEqual(run.returncode, code, f"{out}\n{err}")
        return out, err

    def calibrate(self, *words, code=0):
        return self.sweep("calibrate", "--quiet", "--seconds", "0.001", "--max-bytes", "65536", *words, code=code)

    def ranks_at_work(self, run):
        """Both ranks, once each has begun to measure: the phase in its heartbeat page (schema/progress.h)."""
        def measuring():
            self.assertIsNone(run.poll(), "it ended before a rank could be struck")
            phases = [struct.unpack_from("<QI", page.read_bytes())[1] for page in self.folder.glob("**/rank_*.progress")]
            return processes.by_role(self.mark)["rank"] if phases.count(STEP) == 2 else None
        return processes.wait_for(measuring, 300, "both ranks measure")

    def profile_names(self):
        out, _ = self.sweep("query", "--db", self.folder / "sweep" / "calibrate.db", "SELECT name FROM hardware_profile")
        return out

    def test_two_ranks_over_both_backends(self):
        out, _ = self.calibrate("--json", "--backend", "shm,gloo", "--out", "profile.json", "--heatmap", "bandwidth.svg")
        profile = json.loads(out)
        if schemas.can_be_checked():
            schemas.check("calibrate", profile)
        rows = profile["collectives"]
        self.assertEqual({(r["kind"], r["backend"], r["bytes"]) for r in rows},
                         {(k, b, s) for k in KINDS for b in ("shm", "gloo") for s in (1024, 4096, 16384, 65536)})
        self.assertTrue(all(r["wrong"] == 0 and r["seconds"] > 0 and r["ranks"] == 2 and r["nodes"] == 1 for r in rows), rows)
        self.assertEqual({r["precision"] for r in profile["matmul"]}, {"fp32", "bf16"})
        self.assertTrue(profile["launch_s"] > 0 and len(profile["copies"]) > 2, profile)
        self.assertEqual(json.loads((self.folder / "profile.json").read_text()), profile)
        svg = (self.folder / "bandwidth.svg").read_text()
        self.assertEqual(svg.count("<rect "), 1 + len(rows))
        self.assertIn("cpu", self.profile_names())

    def test_the_network_alone_leaves_the_rest_of_a_profile(self):
        table, _ = self.calibrate("--only", "machine")
        self.assertIn("GFLOP/s", table)
        table, _ = self.calibrate("--only", "collectives", "--backend", "shm")
        self.assertNotIn("copy of", table)
        lines = [line.split() for line in table.splitlines() if line.split()[-1:] == ["right"]]
        self.assertEqual({line[0] for line in lines}, KINDS)
        for line in lines:  # bus = alg x factor, of printed figures
            self.assertAlmostEqual(float(line[-2]), float(line[-3]) * FACTOR[line[0]], delta=0.02 * float(line[-3]) + 1e-6)
        (self.folder / "grid.yaml").write_text(GRID)
        self.assertIn("times of cpu: by the profile 'cpu'", self.sweep("plan", "grid.yaml")[0])

    def test_kernels_are_measured_imported_and_written_as_a_table(self):
        out, _ = self.calibrate("--only", "kernels", "--json", "--kernels-out", "table.csv")
        profile = json.loads(out)
        if schemas.can_be_checked():
            schemas.check("calibrate", profile)
        kinds = {(k["op"], k["type"]) for k in profile["kernels"]}
        self.assertEqual({op for op, _ in kinds}, {"mm", "bmm", "attention", "attention_causal", "attention_backward", "attention_backward_causal"})
        self.assertEqual({kind for _, kind in kinds}, {"fp32", "bf16"})
        self.assertTrue(all(k["seconds"] > 0 for k in profile["kernels"]), profile["kernels"])
        lines = (self.folder / "table.csv").read_text().splitlines()
        self.assertEqual(lines[0], "operator,shape,type,gpu,us")
        self.assertEqual(len(lines), 1 + len(profile["kernels"]))
        (self.folder / "given.csv").write_text("gpu,operator,shape,type,us\ncpu,mm,64x64x64,fp32,12.5\ncpu,memory,4096,,3\nl4-24gb,mm,8x8x8,bf16,1\n")
        _, err = self.sweep("calibrate", "--import-kernels", "given.csv", "--out", "both.json")
        self.assertIn("2 kernel times of cpu", err)
        kernels = json.loads((self.folder / "both.json").read_text())["kernels"]
        self.assertIn({"op": "memory", "shape": "4096", "type": "", "seconds": 3e-06}, kernels)
        self.assertGreaterEqual(len(kernels), len(profile["kernels"]) + 1)
        for row in ("cpu,mm,64x,fp32,12.5", "cpu,gelu,4096,bf16,3"):  # sizes that are missing, an operator that no phantom asks for
            (self.folder / "given.csv").write_text(f"gpu,operator,shape,type,us\n{row}\n")
            self.assertIn("given.csv: line 2", self.sweep("calibrate", "--import-kernels", "given.csv", code=2)[1])
        self.sweep("calibrate", "--import-kernels", "none.csv", code=2)
        self.sweep("calibrate", "--remove", "none", code=2)
        self.sweep("calibrate", "--remove", "cpu")
        self.sweep("calibrate", "--remove", "cpu", code=2)  # it is gone

    def struck(self, blow, *words):
        run = self.start("calibrate", "--quiet", "--only", "collectives", "--backend", "shm", "--seconds", "5", *words)
        ranks = self.ranks_at_work(run)
        os.kill(ranks[-1].pid, blow)
        out, err = run.communicate(timeout=600)
        self.assertEqual(run.returncode, 1, f"{out}\n{err}")
        self.assertEqual(self.profile_names().count("cpu"), 0)
        processes.wait_until_none(self.mark)
        return err

    def test_a_rank_that_is_killed_ends_its_attempt(self):
        self.assertIn("crash", self.struck(signal.SIGKILL))

    def test_a_collective_that_hangs_is_ended(self):
        self.assertIn("hang", self.struck(signal.SIGSTOP, "--hang-seconds", "4"))

    def test_what_cannot_be_is_refused(self):
        self.sweep("calibrate", "--backend", "shm", "--nodes", "2", code=2)
        self.sweep("calibrate", "--hardware", "nonsense", code=2)
        self.sweep("calibrate", "--only", "collectives", "--ranks", "1", code=2)
        self.sweep("calibrate", "--min-bytes", "4096", "--max-bytes", "1024", code=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
