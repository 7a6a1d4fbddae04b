#!/usr/bin/env python3
"""phantom_gpu_test.py BIN_DIR PHANTOM_DIR: the GPU half without a GPU: LibTorch's own CUDA code over the preloaded library
of phantom GPUs. Each case names the finding (docs/gpu-findings.md) that it shows mended."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import database  # noqa: E402  (found by the line above)

BIN, PHANTOM = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

GRID = """name: phantom
model: {{family: llama, layers: 4, hidden_size: 1024, heads: 8, kv_heads: 2, intermediate_size: 2816, vocab_size: 8192}}
base: {{hardware: {hardware}, seq_len: 512, precision: {precision}, global_batch_size: 4, micro_batch_size: 1}}
grid: {grid}
measure: {{warmup_steps: 1, steps: 3}}
limits: {{hang_seconds: 10, retries_crash: 0}}
"""
COLUMNS = "outcome", "oom_kind", "phase", "oom_part", "oom_asked_bytes", "cause_rank", "reason", "util_mean", "exposed_comm_ms"


class PhantomGpuTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sweep-phantom-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def environment(self, gpus, device, faults):
        more = {"SWEEP_PHANTOM": json.dumps(device), "SWEEP_PHANTOM_GPUS": str(gpus), "SWEEP_PHANTOM_NODE": self.folder.name,
                "LD_LIBRARY_PATH": str(PHANTOM), "LD_PRELOAD": str(PHANTOM / "libsweep_phantom.so")}
        if faults:
            more["SWEEP_PHANTOM_FAULTS"] = faults
        return {**os.environ, **more, "SWEEP_SITE": str(self.folder / "no-site.yaml"), "OMP_NUM_THREADS": "1"}

    def run_grid(self, grid, gpus=2, hardware="h100-sxm-80gb", device=None, faults="", precision="bf16", bin_dir=BIN, rehearse=True):
        """One dictionary of COLUMNS a trial, in the order of the grid."""
        file, db = self.folder / "grid.yaml", self.folder / "grid.db"
        file.write_text(GRID.format(hardware=hardware, grid=grid, precision=precision))
        done = subprocess.run([bin_dir / "sweep", "run", file, "--db", db, *(["--rehearse"] if rehearse else [])], env=self.environment(gpus, device or {}, faults),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400)
        self.words = done.stdout + done.stderr
        database.check(db)
        rows = database.rows(db, f"select {', '.join(COLUMNS)} from results where outcome <> 'pruned'")
        self.assertTrue(rows, self.words)
        return [dict(zip(COLUMNS, row)) for row in rows]

    def only(self, *words, **more):
        trials = self.run_grid(*words, **more)
        self.assertEqual(len(trials), 1, trials)
        return trials[0]

    def assert_oom(self, trial, part, kind="device"):
        self.assertEqual((trial["outcome"], trial["oom_kind"], trial["oom_part"]), ("oom", kind, part), trial)

    def test_layouts_run(self):
        """G1, G9, G14: the allocator is asked after CUDA is initialised; groups are split from the world's; time is the stream's."""
        trials = self.run_grid("{gpus_per_node: [1, 2], tp: [1, 2], pp: [1, 2], cp: [1, 2], zero: [0, 3]}\n"
                               "where: [tp * pp * cp <= gpus_per_node, zero == 0 or tp * pp * cp < gpus_per_node]")
        self.assertEqual(len(trials), 6, trials)
        self.assertEqual({trial["outcome"] for trial in trials}, {"ok"}, trials)
        self.assertEqual([trial["util_mean"] for trial in trials if (trial["util_mean"] or 0) > 100], [], trials)

    def test_out_of_memory_in_the_allocator(self):
        """G2, G7: part, phase and size, although the peers wait in NCCL."""
        trial = self.only("{gpus_per_node: [2]}", device={"memory_bytes": 1200 << 20})
        self.assertEqual((trial["outcome"], trial["oom_kind"]), ("oom", "device"), trial)
        self.assertIn(trial["oom_part"], ("build", "forward", "backward", "optimizer"), trial)
        self.assertGreater(trial["oom_asked_bytes"], 0)

    def test_out_of_memory_in_cublas(self):
        """G7"""
        trial = self.only("{gpus_per_node: [2]}", faults="cublas_oom:at=3:rank=1")
        self.assert_oom(trial, "forward")
        self.assertEqual(trial["cause_rank"], 1)

    def test_out_of_memory_in_nccl(self):
        """G7, G14: the communicator is made before the model."""
        trial = self.only("{gpus_per_node: [2]}", device={"memory_bytes": 700 << 20, "nccl_bytes": 300 << 20})
        self.assert_oom(trial, "communication")
        self.assertEqual(trial["phase"], "init")

    def test_a_hang_names_the_rank_that_did_not_come(self):
        """G4"""
        trial = self.only("{gpus_per_node: [4]}", gpus=4, faults="host_hang:at=12:rank=3")
        self.assertEqual((trial["outcome"], trial["cause_rank"]), ("hang", 3), trial)
        self.assertIn("ranks 0-2 wait in all_reduce 12 of group dp; rank 3", trial["reason"])

    def test_where_all_have_come_no_rank_is_blamed(self):
        """G4: a kernel that never meets the others looks the same on every host."""
        trial = self.only("{gpus_per_node: [4]}", gpus=4, faults="hang:at=12:rank=3")
        self.assertEqual((trial["outcome"], trial["cause_rank"]), ("hang", None), trial)

    def test_a_gpu_without_code_is_unsupported(self):
        v100 = {"name": "Tesla V100-SXM2-16GB", "compute_capability": "7.0"}
        trial = self.only("{gpus_per_node: [1]}", gpus=1, hardware="v100-16gb", device=v100, precision="fp16", rehearse=False)
        self.assertEqual((trial["outcome"], trial["phase"]), ("unsupported", "init"), trial)

    def test_another_gpu_than_the_declared_is_refused(self):
        trial = self.only("{gpus_per_node: [1]}", gpus=1, hardware="a100-80gb")
        self.assertEqual((trial["outcome"], trial["phase"]), ("unsupported", "init"), trial)

    def test_without_its_plugin_cpu_trials_run(self):
        """G11"""
        bare = self.folder / "bin"
        bare.mkdir()
        for program in ("sweep", "sweep-agent", "sweep-rank"):
            shutil.copy(BIN / program, bare / program)
        cpu = self.only("{gpus_per_node: [2]}", hardware="cpu", precision="fp32", bin_dir=bare, rehearse=False)
        self.assertEqual(cpu["outcome"], "ok", cpu)
        (self.folder / "grid.db").unlink()
        gpu = self.only("{gpus_per_node: [1]}", gpus=1, bin_dir=bare, rehearse=False)
        self.assertEqual(gpu["outcome"], "unsupported", gpu)

    def test_exchanges_over_three_ranks_end(self):
        """G3: sends and receives are unbuffered; ranks that all send first would wait in a circle."""
        done = subprocess.run([BIN / "sweep", "selftest", "--hardware", "h100-sxm-80gb", "--only", "dp", "--db", self.folder / "s.db"],
                              env=self.environment(3, {}, ""), capture_output=True, text=True, timeout=400)
        rows = database.rows(self.folder / "s.db", "select outcome, reason from results where outcome <> 'pruned'")
        self.assertTrue(rows, done.stdout + done.stderr)
        self.assertNotIn("hang", [outcome for outcome, _ in rows], rows)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
