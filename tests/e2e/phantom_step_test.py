#!/usr/bin/env python3
"""phantom_step_test.py BIN_DIR: what a step costs the host and the allocator on phantom GPUs: how often it waits for the device, what it
launches, what its loss and its attention hold. docs/measurements/2026-11-24-gpu-step.md has the figures of before."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import database  # noqa: E402  (found by the line above)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
GRID = """name: step
base: {{hardware: h100-sxm-80gb, gpus_per_node: 1, seq_len: 4096, precision: bf16, micro_batch_size: 1}}
limits: {{memory_margin_percent: 900}}
measure: {{warmup_steps: 1, steps: 2}}
grid:  # names the models; its own points are dropped
  model:
{models}
where: [tp > 1 and tp == 1]
include:
{trials}
"""
MODELS = {"llama-2": ("llama3-8b", 2), "llama-4": ("llama3-8b", 4), "mixtral-2": ("mixtral-8x7b", 2), "mixtral-4": ("mixtral-8x7b", 4),
          "mixtral-12": ("mixtral-8x7b", 12), "gpt2-2": ("gpt2-xl", 2)}
LAYERS = 12
LAYOUTS = ({}, {"gpus_per_node": 4, "ep": 4}, {"gpus_per_node": 2, "tp": 2}, {"gpus_per_node": 8, "pp": 4, "ep": 2, "grad_accum": 4})
CHUNK = 256 << 20


class PhantomStepTest(unittest.TestCase):
    def rehearsed(self, *trials):
        """A dictionary of results for each trial, in their order."""
        with tempfile.TemporaryDirectory(prefix="sweep-step-") as folder:
            grid, db = pathlib.Path(folder) / "step.yaml", pathlib.Path(folder) / "step.db"
            used = dict.fromkeys(trial["model"] for trial in trials)
            lines = [f"    - {{name: {name}, base: {MODELS[name][0]}, layers: {MODELS[name][1]}}}" for name in used]
            told = ["  - {" + ", ".join(f"{axis}: {value}" for axis, value in trial.items()) + "}" for trial in trials]
            grid.write_text(GRID.format(models="\n".join(lines), trials="\n".join(told)))
            done = subprocess.run([BIN / "sweep", "run", grid, "--rehearse", "--yes", "--db", db], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=900,
                                  env={**os.environ, "OMP_NUM_THREADS": "1", "SWEEP_SITE": folder + "/none", "XDG_STATE_HOME": folder})
            columns = ("outcome", "step_launches", "step_host_syncs", "step_ms", "peak_allocated_bytes", *dict.fromkeys(key for t in trials for key in t))
            rows = database.rows(db, f"select {', '.join(columns)} from results where outcome <> 'pruned'")
        results = [dict(zip(columns, row)) for row in rows]
        self.assertEqual(len(results), len(trials), done.stdout + done.stderr)
        found = [next(one for one in results if all(one[axis] == value for axis, value in trial.items())) for trial in trials]
        self.assertEqual({one["outcome"] for one in found}, {"ok"}, done.stdout + done.stderr)
        return found

    def a_layer(self, name, **axes):
        two, four = self.rehearsed({"model": f"{name}-2", **axes}, {"model": f"{name}-4", **axes})
        return (four["step_launches"] - two["step_launches"]) / 2

    def test_the_host_waits_once_a_step(self):
        dense = {"model": "llama-2"}
        for one in self.rehearsed(dense, *({"model": "mixtral-12", **layout} for layout in LAYOUTS)):
            self.assertEqual(one["step_host_syncs"], 1, one)

    def test_learned_routing_waits_once_a_layer_more(self):
        for one in self.rehearsed({"model": "mixtral-12", "routing": "learned"}, {"model": "mixtral-12", "routing": "learned", "gpus_per_node": 4, "ep": 4}):
            self.assertEqual(one["step_host_syncs"], 1 + LAYERS, one)


if __name__ == "__main__":
    unittest.main(verbosity=2)
