#!/usr/bin/env python3
"""plan_memory_test.py BIN_DIR: memory in `sweep plan`: the table of one trial, the margin, and dry runs near the limit."""
import json
import pathlib
import subprocess
import sys
import unittest

import sweep_folder

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
GRID = """name: near
model: {{name: m, family: llama, layers: 4, hidden_size: 128, heads: 4, kv_heads: 2, intermediate_size: 352, vocab_size: 512}}
base: {{hardware: cpu, seq_len: 128, global_batch_size: 8, pp: 2, gpus_per_node: 2, memory_cap_bytes: {cap}}}
grid: {{micro_batch_size: [1, 2, 4]}}
limits: {{memory_margin_percent: {margin}}}
"""

H100 = 81559 << 20
GPU_GRID = """name: pieces
model: qwen2.5-7b
base: {hardware: h100-sxm-80gb, gpus_per_node: 8, seq_len: 20480, precision: bf16, zero: 3, recompute: full, grad_accum: 4}
grid: {micro_batch_size: [2, 4, 6, 8, 9, 10]}
"""


class PlanMemory(sweep_folder.SweepFolder):
    bin = BIN

    def grid(self, cap, margin=10):
        path = self.folder / "near.yaml"
        path.write_text(GRID.format(cap=cap, margin=margin))
        return path

    def plan(self, path, *options):
        return [json.loads(line) for line in self.sweep("plan", path, "--json", *options).splitlines()]

    def test_the_parts_add_up_to_the_prediction(self):
        grid = self.grid(1 << 40)
        for entry in self.plan(grid):
            parts = entry["predicted_memory"]["parts"]
            self.assertAlmostEqual(sum(parts.values()), entry["predicted_bytes"], delta=16)
            self.assertEqual(entry["predicted_memory"]["limit_bytes"], 1 << 40)
            table = self.sweep("plan", grid, "--memory", entry["id"]).splitlines()
            self.assertEqual(len(table), 5, table)  # a sentence, the head, its line, two stages
        self.sweep("plan", grid, "--memory", "no-such-trial", code=2)

    def test_the_margin_decides_what_runs(self):
        predicted = sorted(entry["predicted_bytes"] for entry in self.plan(self.grid(1 << 40)))
        cap = predicted[1] // 105 * 100 // 512 * 512  # the second needs 5 % more
        rules = {entry["predicted_bytes"]: entry.get("rule") for entry in self.plan(self.grid(cap))}
        self.assertEqual([rules[bytes_] for bytes_ in predicted], [None, None, "memory"])
        rules = {entry["predicted_bytes"]: entry.get("rule") for entry in self.plan(self.grid(cap, margin=1))}
        self.assertEqual([rules[bytes_] for bytes_ in predicted], [None, "memory", "memory"])

    @unittest.skipUnless((BIN / "sweep-rank").exists(), "needs sweep-rank")
    def test_on_a_gpu_the_allocator_decides(self):
        """What is allocated would fit, and the segments that it is reserved in do not."""
        path = self.folder / "gpu.yaml"
        path.write_text(GPU_GRID)
        trials = {}
        for entry in self.plan(path):
            line = json.dumps(entry["trial"]) + "\n"
            answer = json.loads(subprocess.run([BIN / "sweep-rank", "dry-run", "--backend", "cuda"], input=line,
                                               capture_output=True, text=True, check=True).stdout)
            trials[entry["trial"]["micro_batch_size"]] = (entry, answer)
        near = {size: (e, a) for size, (e, a) in trials.items() if 0.8 < max(a["peak_bytes"]) / (0.95 * H100) < 1.1}
        self.assertTrue(near, {size: a["peak_bytes"] for size, (e, a) in trials.items()})
        for size, (entry, answer) in near.items():
            with self.subTest(micro_batch_size=size):
                self.assertEqual(entry["admitted"], "refused" not in answer)
                self.assertEqual(entry["predicted_bytes"], answer["peak_rank_bytes"])
                if "refused" in answer:
                    self.assertEqual(entry["rule"], "memory")
                    refused = answer["refused"]
                    self.assertGreater(refused["reserved_bytes"] + refused["bytes"], refused["limit_bytes"])
                    self.assertLessEqual(refused["reserved_bytes"], refused["limit_bytes"])
        refused = [size for size, (e, a) in near.items() if "refused" in a]
        self.assertTrue(any(a["peak_rank_bytes"] < a["refused"]["limit_bytes"] for a in (trials[size][1] for size in refused)))

    @unittest.skipUnless((BIN / "sweep-rank").exists(), "needs sweep-rank")
    def test_a_dry_run_decides_near_the_limit(self):
        predicted = sorted(entry["predicted_bytes"] for entry in self.plan(self.grid(1 << 40)))
        entries = {entry["id"]: entry for entry in self.plan(self.grid(predicted[1] // 512 * 512))}
        asked = {entry["id"]: entry for entry in self.plan(self.grid(predicted[1] // 512 * 512), "--dry-run")}
        near = next(trial for trial, entry in entries.items() if entry["predicted_bytes"] == predicted[1])
        lines = json.dumps(entries[near]["trial"]) + "\n"
        answer = subprocess.run([BIN / "sweep-rank", "dry-run"], input=lines, capture_output=True, text=True, check=True).stdout
        measured = json.loads(answer)
        self.assertEqual(asked[near]["predicted_bytes"], measured["peak_rank_bytes"])
        self.assertEqual(asked[near]["admitted"], measured["peak_rank_bytes"] <= predicted[1] // 512 * 512)
        for stage, peak in zip(measured["peak_parts"], measured["peak_bytes"], strict=True):
            self.assertEqual(sum(stage.values()), peak)


if __name__ == "__main__":
    unittest.main()
