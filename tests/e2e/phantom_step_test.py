#!/usr/bin/env python3
"""phantom_step_test.py BIN_DIR: what a step costs the host and the allocator on phantom GPUs: how often it waits for the device, what it
launches, what its loss and its attention hold. docs/measurements/2026-11-24-gpu-step.md has the figures of before."""
import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import database

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "scripts"))
import launch_table  # noqa: E402  (found by the line above)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
GRID = """name: step
base: {{hardware: h100-sxm-80gb, gpus_per_node: 1, seq_len: 4096, precision: bf16, micro_batch_size: 1}}
limits: {{memory_margin_percent: 900}}
measure: {{warmup_steps: 2, steps: 2}}
grid:  # names the models; its own points are dropped
  model:
{models}
where: [tp > 1 and tp == 1]
include:
{trials}
"""
MODELS = {"llama-2": "llama3-8b, layers: 2", "mixtral-2": "mixtral-8x7b, layers: 2", "mixtral-4": "mixtral-8x7b, layers: 4",
          "mixtral-12": "mixtral-8x7b, layers: 12, intermediate_size: 4096", "gpt2-2": "gpt2-xl, layers: 2", "gpt2-4": "gpt2-xl, layers: 4",
          "llama-4": "llama3-8b, layers: 4", "llama-1g": "llama3-8b, layers: 4, vocab_size: 32768"}
LAYERS = 12
LAYOUTS: tuple[dict[str, int], ...] = ({}, {"gpus_per_node": 4, "ep": 4}, {"gpus_per_node": 2, "tp": 2}, {"gpus_per_node": 8, "pp": 4, "ep": 2, "grad_accum": 4})
LAUNCHES = {"llama": 30, "gpt2": 30, "mixtral": 45}  # most of a layer, update included; 120.5, 121.5 and 281 before fused kernels
# Of a Llama-8B layer at 4,096 tokens, beside products and attention: what fused kernels tell, and two sums over the four query heads that
# share a key and a value, which tell nothing: each reads a gradient of 4,096 columns and writes one of 1,024. 17.2e9 before fused kernels.
SUMS_BYTES = 2 * 4096 * (4096 + 1024) * 2
LAYER_BYTES = 1.82e9
TEMPORARY = 256 << 20     # a chunk of the loss; two of 2 GiB before there were chunks
OVERLAP_LAUNCHES = 124    # of a layer over eight ranks, with tp_overlap
LOSS_PEAK = 11.97e9       # bytes of two layers with a vocabulary of 128,256; more where the logits are there whole
# Bytes with bf16_mixed, where PyTorch's FSDP2 has 33.33e9 and 11.82e9 (docs/measurements/2026-11-26-gradients.md); 35.76e9 and 13.53e9 before.
PEAKS = (({"model": "llama-4"}, 32.95e9), ({"model": "llama-1g", "gpus_per_node": 2, "zero": 3}, 11.84e9))


@functools.cache
def last_step(layers):
    return launch_table.last_step(launch_table.parsed([str(BIN), "--model", "llama3-8b"]), layers)


def peak_of_fsdp2(gpus, vocabulary):
    """Bytes that PyTorch's FSDP2 allocates for four layers of the 8B on the same phantom."""
    words = ["--parallel", "fsdp", "--device", "cuda", "--precision", "bf16_mixed", "--ranks", gpus, "--layers", 4, "--hidden", 4096, "--heads", 32,
             "--kv-heads", 8, "--intermediate", 14336, "--vocab", vocabulary, "--seq-len", 4096, "--micro-batch-size", 1, "--warmup", 1, "--steps", 2]
    command = [REPO / "scripts" / "phantom", "--build", BIN.parent, "--gpus", gpus, "--", sys.executable, REPO / "scripts" / "bench_pytorch.py", *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["peak_allocated_bytes"]


class PhantomStepTest(unittest.TestCase):
    def rehearsed(self, *trials, **environment):
        """A dictionary of results for each trial, in their order."""
        with tempfile.TemporaryDirectory(prefix="sweep-step-") as folder:
            grid, db = pathlib.Path(folder) / "step.yaml", pathlib.Path(folder) / "step.db"
            used = dict.fromkeys(trial["model"] for trial in trials)
            lines = [f"    - {{name: {name}, base: {MODELS[name]}}}" for name in used]
            told = ["  - {" + ", ".join(f"{axis}: {json.dumps(value).strip(chr(34))}" for axis, value in trial.items()) + "}" for trial in trials]
            grid.write_text(GRID.format(models="\n".join(lines), trials="\n".join(told)))
            done = subprocess.run([BIN / "sweep", "run", grid, "--rehearse", "--yes", "--db", db], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=900,
                                  env={**os.environ, **environment, "OMP_NUM_THREADS": "1", "SWEEP_SITE": folder + "/none", "XDG_STATE_HOME": folder})
            columns = ("outcome", "step_launches", "step_host_syncs", "step_host_ms", "step_ms", "peak_allocated_bytes", "sent_bytes", "calls_dp",
                       "calls_tp", "exposed_comm_ms", "step_guessed_share", *dict.fromkeys(key for t in trials for key in t))
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

    def test_the_forward_holds_no_gradients(self):
        results = self.rehearsed(*({**trial, "precision": "bf16_mixed"} for trial, _ in PEAKS))
        for result, (trial, most) in zip(results, PEAKS, strict=True):
            self.assertLessEqual(result["peak_allocated_bytes"], most, trial)

    @unittest.skipUnless(importlib.util.find_spec("torch"), f"{sys.executable} has no torch")
    def test_its_peak_is_no_higher_than_that_of_fsdp2(self):
        results = self.rehearsed(*({**trial, "precision": "bf16_mixed"} for trial, _ in PEAKS))
        for result, (trial, _) in zip(results, PEAKS, strict=True):
            fsdp2 = peak_of_fsdp2(trial.get("gpus_per_node", 1), 32768 if trial["model"] == "llama-1g" else 128256)
            self.assertLessEqual(result["peak_allocated_bytes"], fsdp2, trial)

    def test_graphs_are_few_launches_of_the_same_work(self):
        """Of four micro-batches the first, those between and the last are two graphs each; the update is launched as usual."""
        layouts = ({"gpus_per_node": 1}, {"gpus_per_node": 2, "zero": 3}, {"gpus_per_node": 4, "tp": 2, "sp": True, "zero": 2},
                   {"model": "mixtral-2", "gpus_per_node": 2, "ep": 2})
        for layout in layouts:
            trial = {"model": "llama-4", "precision": "bf16_mixed", "grad_accum": 4, **layout}
            plain, graphs = self.rehearsed({**trial, "cuda_graph": False}, {**trial, "cuda_graph": True})
            with self.subTest(layout=layout):
                for same in ("sent_bytes", "calls_dp", "calls_tp", "step_host_syncs"):
                    self.assertEqual(graphs[same], plain[same], same)
                self.assertLess(graphs["step_launches"], plain["step_launches"] / 4)
                self.assertLess(graphs["step_host_ms"], plain["step_host_ms"] / 2)
                self.assertLess(abs(graphs["peak_allocated_bytes"] / plain["peak_allocated_bytes"] - 1), 0.02)
                self.assertIsNone(graphs["exposed_comm_ms"])

    def test_kernels_take_the_times_of_a_table(self):
        """Of a GPU whose memory has a tenth of the bandwidth: kernels that tell their bytes are scaled from one row."""
        (plain,) = self.rehearsed({"model": "llama-2"})
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
            table.write("operator,shape,type,gpu,us\nmemory,4000000,,h100-sxm-80gb,20\nmm,8x8x8,bf16,a100-80gb,1\n")
            table.flush()
            (slow,) = self.rehearsed({"model": "llama-2"}, SWEEP_PHANTOM_KERNELS=table.name)
        self.assertEqual(plain["step_guessed_share"], 1)
        self.assertTrue(0 < slow["step_guessed_share"] < 1, slow)
        self.assertGreater(slow["step_ms"], plain["step_ms"])
        self.assertEqual(slow["step_launches"], plain["step_launches"])

    def test_learned_routing_waits_once_a_layer_more_where_rows_travel(self):
        """Elsewhere the backward reads counts that are there since the forward, but for the last layer's."""
        here, apart = self.rehearsed({"model": "mixtral-12", "routing": "learned"},
                                     {"model": "mixtral-12", "routing": "learned", "gpus_per_node": 4, "ep": 4})
        self.assertLessEqual(here["step_host_syncs"], 2, here)
        self.assertEqual(apart["step_host_syncs"], 1 + LAYERS, apart)

    def test_a_layer_is_few_launches(self):
        for name, most in LAUNCHES.items():
            self.assertLessEqual(self.a_layer(name, seq_len=1024), most, name)

    def test_a_layer_moves_few_bytes(self):
        counts, moved = launch_table.of_a_layer(last_step(2), last_step(4))
        silent = {name: count for (group, name), count in counts.items() if group == "library"}
        self.assertEqual(silent, {"reduce_kernel": 2})
        told = sum(1e9 * gigabytes for (group, _), gigabytes in moved.items() if group == "fused")
        self.assertLessEqual(told + SUMS_BYTES, LAYER_BYTES)

    def test_no_temporary_is_larger_than_a_chunk_of_the_loss(self):
        self.assertLessEqual(launch_table.largest_temporary(last_step(2)), TEMPORARY)

    def test_exchanges_in_pieces_do_not_quadruple_launches(self):
        """Each of four pieces was a product for each rank: 443.5 of a layer at tp 8."""
        whole, pieces = (self.a_layer("llama", gpus_per_node=8, tp=8, sp=True, tp_overlap=overlap) for overlap in (False, True))
        self.assertLessEqual(pieces, OVERLAP_LAUNCHES)
        self.assertLess(pieces, 4 * whole)

    def test_fp8_is_five_launches_a_product(self):
        """Of twelve products of a layer, and an addition for each residual."""
        usual, eight = (self.a_layer("llama", precision=precision) for precision in ("bf16_master", "fp8"))
        self.assertEqual(eight - usual, 12 * (5 - 1) + 2)

    def test_math_attention_launches_the_same_for_all_sequences(self):
        """Of one sequence some copies are views."""
        axes = {"attention": "math", "precision": "fp16", "seq_len": 1024}
        two, eight = (self.a_layer("gpt2", micro_batch_size=batch, **axes) for batch in (2, 8))
        self.assertEqual(two, eight)

    def test_the_loss_takes_a_chunk_of_the_vocabulary_only(self):
        one, = self.rehearsed({"model": "llama-2"})
        self.assertLessEqual(one["peak_allocated_bytes"], LOSS_PEAK)

    def test_each_attention_of_the_library_runs(self):
        kinds = ("flash", "sdpa", "cudnn")
        for one in self.rehearsed(*({"model": "llama-2", "attention": kind} for kind in kinds)):
            self.assertEqual(one["step_host_syncs"], 1, one)


if __name__ == "__main__":
    unittest.main(verbosity=2)
