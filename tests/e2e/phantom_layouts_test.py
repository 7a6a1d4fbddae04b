#!/usr/bin/env python3
"""phantom_layouts_test.py BIN_DIR [CASE...]: phantom_layouts.yaml rehearsed: about 100 configurations on 1 to 8 phantom GPUs. What LibTorch's
allocator counts is what the dry run predicts. Then every strategy of `selftest`, and `--screen`, on phantoms."""
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
import database  # noqa: E402  (found by the line above)
import rehearse_memory  # noqa: E402
import sweep_folder  # noqa: E402

BIN = pathlib.Path(sys.argv[1]).resolve()
GRID = HERE / "phantom_layouts.yaml"
TOLERANCE = 0.02
RESERVED_TOLERANCE, RESERVED_SHARE = 0.05, 0.8  # side streams have pools of their own, which the dry run does not follow
CAPACITY = 85520809984 - 524288000  # an H100's memory, less the context (docs/phantom.md)
MUST_NOT_FIT = 2  # trials of the grid
STRATEGIES = 20   # at least so many of selftest
SCREEN = """name: screen
model: {{family: llama, layers: 2, hidden_size: 64, heads: 8, kv_heads: 8, intermediate_size: 172, vocab_size: 256}}
base: {{hardware: h100-sxm-80gb, seq_len: 64, precision: bf16, global_batch_size: 8}}
grid: {{gpus_per_node: [{ranks}]}}
measure: {{warmup_steps: 1, steps: 1}}
"""


class PhantomLayoutsTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        self.db = self.folder / "layouts.db"

    def sweep(self, *words, **variables):
        done = subprocess.run([BIN / "sweep", *words, "--db", self.db], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1200,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "SWEEP_SITE": str(self.folder / "none"),
                                   "XDG_STATE_HOME": str(self.folder), **variables})
        return done.stdout + done.stderr

    def on_phantoms(self, gpus, *words):
        """Outside a rehearsal: trials end as invalid, what their ranks recorded is kept."""
        libraries = BIN.parent / "phantom"
        return self.sweep(*words, SWEEP_PHANTOM="{}", SWEEP_PHANTOM_GPUS=str(gpus), SWEEP_PHANTOM_NODE=f"{self.folder.name}-{gpus}",
                          LD_LIBRARY_PATH=str(libraries), LD_PRELOAD=str(libraries / "libsweep_phantom.so"))

    def test_allocated_is_what_the_dry_run_predicts(self):
        said = self.sweep("run", GRID, "--rehearse", "--yes")
        plan = [entry for entry in rehearse_memory.planned(BIN, GRID) if entry["admitted"]]
        told = rehearse_memory.predicted(BIN, plan)
        found = {row[0]: row[1:] for row in database.rows(self.db, "select trial, outcome, oom_kind, peak_allocated_bytes, peak_reserved_bytes from results")}
        self.assertGreaterEqual(len(plan), 40)
        refused, reserved_near = 0, []
        for entry in plan:
            outcome, kind, allocated, reserved = found[entry["id"]]
            dry = told[entry["id"]]["peak_rank_bytes"]
            with self.subTest(trial=entry["trial"]):
                if outcome == "oom":
                    refused += 1
                    self.assertEqual(kind, "device", said)
                    self.assertGreater(dry, CAPACITY, "predicted to fit, and ran out of memory")
                else:
                    self.assertEqual(outcome, "ok", said)
                    self.assertLessEqual(abs(dry / allocated - 1), TOLERANCE, (dry, allocated))
                    reserved_near.append(abs(max(told[entry["id"]]["reserved_bytes"]) / reserved - 1) <= RESERVED_TOLERANCE)
        self.assertEqual(refused, MUST_NOT_FIT)
        self.assertGreaterEqual(sum(reserved_near) / len(reserved_near), RESERVED_SHARE)

    def test_every_strategy_of_the_selftest_ends(self):
        """Kernels compute nothing, so no loss is compared: each rank of each strategy comes to its end and says what it called."""
        said = self.on_phantoms(4, "selftest", "--hardware", "h100-sxm-80gb", "--ranks-per-node", "4", "--quiet")
        rows = database.rows(self.db, "select r.trial, r.nodes * r.gpus_per_node, count(k.rank),"
                                      " sum(json_type(k.effective, '$.proof.collectives') = 'array') from results r"
                                      " join trial t on t.id = r.trial join plan_entry p on p.trial = t.key"
                                      " left join rank_record k on k.attempt = p.final_attempt where r.outcome <> 'pruned' group by r.trial")
        self.assertGreaterEqual(len(rows), STRATEGIES, said)
        for trial, ranks, records, proofs in rows:
            self.assertEqual((records, proofs), (ranks, ranks), f"{trial}\n{said}")

    def test_the_screen_ends(self):
        for gpus in (1, 2, 8):
            self.db, file = self.folder / f"screen-{gpus}.db", self.folder / f"screen-{gpus}.yaml"
            file.write_text(SCREEN.format(ranks=gpus))
            said = self.on_phantoms(gpus, "run", file, "--screen", "show")
            with self.subTest(gpus=gpus):
                screens = database.rows(self.db, "select json_extract(facts, '$.screen.matmul_gflops') > 0 from environment")
                self.assertEqual(screens, [(1,)], said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
