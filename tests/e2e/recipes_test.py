#!/usr/bin/env python3
"""recipes_test.py BIN_DIR [RANK_PROGRAM]: sweeps through recipes, with the real trainers, two ranks on CPU. The scripts know nothing of
sweep. What is not installed is skipped."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
RANK = ["--rank", str(pathlib.Path(sys.argv.pop(1)).resolve())] if len(sys.argv) > 1 and "/" in sys.argv[1] else []
SCRIPTS = pathlib.Path(__file__).resolve().parent / "trainers"
STAGES = [1, 3, 2] if os.environ.get("SWEEP_LONG") else [1]  # 1 and 2 are one class of DeepSpeed; trainers_test.py runs 3
HEAD = "name: t\nbase: {hardware: cpu, gpus_per_node: 2}\nmeasure: {warmup_steps: 1, steps: 3}\nlimits: {retries_crash: 0}\n"


def needs(*modules):
    lacking = [each for each in modules if importlib.util.find_spec(each) is None]
    return unittest.skipIf(lacking, f"not installed: {lacking}")


@needs("torch")
class RecipesTest(unittest.TestCase):
    def run_grid(self, text, **environment):
        folder = tempfile.TemporaryDirectory(prefix="sweep-recipes-")
        self.addCleanup(folder.cleanup)
        here = pathlib.Path(folder.name)
        (here / "g.yaml").write_text(HEAD + text.replace("SCRIPTS", str(SCRIPTS)))
        programs = str(pathlib.Path(sys.executable).parent)
        surroundings = {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "", **environment}

        def sweep(*words):
            return subprocess.run([str(BIN / "sweep"), *words], cwd=here, env=surroundings, capture_output=True, text=True, timeout=1500)

        done = sweep("run", "g.yaml", "--db", "r.db", "--quiet", *RANK)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        rows = json.loads(sweep("export", "json", "--db", "r.db").stdout)
        logs = [each.read_text()[-3000:] for each in here.glob("r.db.spool/*/attempts/*/rank_00000.log")]
        return [row for row in rows if row["outcome"] not in ("pruned", "unsupported")], rows, "\n".join([done.stderr, *logs])

    def assert_measured(self, rows, count, logs, tokens):
        self.assertEqual([row["outcome"] for row in rows], ["ok"] * count, logs)
        for row in rows:
            self.assertEqual(row["timed_steps"], 3, row)
            for part in ("step_ms", "forward_ms", "backward_ms", "optimizer_ms"):
                self.assertGreater(row[part], 0, (part, row))
            self.assertAlmostEqual(row["tokens_per_s"] * row["step_ms"] / 1e3, tokens(row), delta=0.01 * tokens(row))

    def test_torchrun(self):
        rows, _, logs = self.run_grid(
            "workload:\n  recipe: torchrun\n  script: SCRIPTS/torch_train.py\n"
            "  arguments: [\"{mode}\", \"{total_steps}\", --micro-batch, \"{micro_batch_size}\", --seq, \"{seq_len}\"]\n"
            "  axes: {mode: {type: text, default: ddp, values: [ddp, fsdp2]}}\n"
            "grid: {mode: [fsdp2], micro_batch_size: [3], seq_len: [24]}\n")
        self.assert_measured(rows, 1, logs, lambda row: 2 * 3 * 24)

    @needs("transformers", "accelerate")
    def test_huggingface(self):
        rows, everything, logs = self.run_grid(
            "workload: {recipe: huggingface, script: SCRIPTS/hf_options_train.py}\n"
            "grid: {grad_accum: [2], micro_batch_size: [3], recompute: [full, selective]}\n")
        self.assert_measured(rows, 1, logs, lambda row: 2 * 3 * 2 * 32)
        self.assertEqual(sum(row["outcome"] == "unsupported" for row in everything), 1)

    @needs("lightning")
    def test_lightning(self):
        rows, _, logs = self.run_grid(
            "workload:\n  recipe: lightning\n  script: SCRIPTS/lightning_options_train.py\n"
            "  arguments: [--data.batch_size, \"{micro_batch_size}\"]\n"
            "grid: {micro_batch_size: [3], grad_accum: [2]}\n")
        self.assert_measured(rows, 1, logs, lambda row: 2 * 3 * 2 * 32)

    @needs("deepspeed")
    def test_deepspeed(self):
        (settings := tempfile.NamedTemporaryFile("w", suffix=".json")).write(
            json.dumps({"optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}}))
        settings.flush()
        self.addCleanup(settings.close)
        rows, _, logs = self.run_grid(
            "workload:\n  recipe: deepspeed\n  script: SCRIPTS/deepspeed_options_train.py\n"
            f"  arguments: [--steps, \"{{total_steps}}\"]\n  files: {{ds.json: {{from: {settings.name}}}}}\n"
            f"grid: {{micro_batch_size: [2]}}\nzip: [{{zero: {STAGES}, grad_accum: {[2, 1, 1][:len(STAGES)]}}}]\n")
        self.assertEqual([row["outcome"] for row in rows], ["ok"] * len(STAGES), logs)
        for row in rows:
            self.assertGreater(row["step_ms"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
