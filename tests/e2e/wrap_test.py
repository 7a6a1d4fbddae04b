#!/usr/bin/env python3
"""wrap_test.py BIN_DIR RANK_PROGRAM: `sweep wrap` and `sweep init` as a user types them. The programs need no PyTorch; RANK_PROGRAM is never
started."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import database
import sweep_folder
from processes import wait_for, working_in

BIN, RANK = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()

# It imports the module that the agent brings along.
TRAINER = """
import os, sys, time
import sweep_trial
mode = sys.argv[1]
for i in range(6):
    time.sleep(0.02)
    if i == 3 and mode == "oom": raise MemoryError("no more")
    if i == 3 and mode == "crash": sys.exit(7)
    if i == 3 and mode == "hang":
        open("hangs", "w").write(str(os.getpid()))
        time.sleep(10_000)
    sweep_trial.step(tokens=100)
"""


class Folder(sweep_folder.SweepFolder):
    bin = BIN

    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(TRAINER)


class WrapTest(Folder):
    def wrap(self, *words, options=(), code=0):
        return self.sweep("wrap", "--rank", RANK, *options, "--", sys.executable, "train.py", *words, code=code)

    def rows(self, sql):
        return database.rows(self.folder / "sweep.db", sql)

    def test_ok_and_again(self):
        said = self.wrap("ok")
        log = next(line for line in said.splitlines() if line.startswith("log: "))[5:]
        self.assertTrue(pathlib.Path(log).exists(), said)
        self.wrap("ok")
        self.assertEqual(self.rows("SELECT count(*), count(DISTINCT entry) FROM attempt"), [(2, 1)])
        rows = json.loads(self.sweep("export", "json"))
        self.assertEqual([row["outcome"] for row in rows], ["ok"])
        self.assertGreaterEqual(rows[0]["step_ms"], 20)

    def test_runs_with_other_arguments_stay_beside_each_other(self):
        self.wrap("ok", "--lr", "1")
        self.wrap("crash", code=1)
        self.wrap("ok", "--lr", "2")
        self.wrap("ok", "--lr", "1")
        rows = json.loads(self.sweep("export", "json"))
        self.assertEqual(sorted((row["labels"]["command_line"].split(" ", 2)[2], row["outcome"]) for row in rows),
                         [("crash", "crash"), ("ok --lr 1", "ok"), ("ok --lr 2", "ok")])
        self.assertEqual(self.rows("SELECT count(*) FROM attempt"), [(4,)], "what was run before is not run again")
        for row in rows:
            self.sweep("explain", row["trial"])

    def test_how_it_fails(self):
        for mode, options, outcome in (("crash", (), "crash"), ("oom", (), "oom"), ("hang", ("--hang-seconds", "2"), "hang")):
            with self.subTest(mode):
                self.wrap(mode, options=options, code=1)
                rows = [row for row in json.loads(self.sweep("export", "json")) if row["outcome"] != "pruned"]
                self.assertEqual(rows[-1]["outcome"], outcome)

    def test_several_processes(self):
        (self.folder / "ranks.py").write_text("import os; open('rank' + os.environ['RANK'] + 'of' + os.environ['WORLD_SIZE'], 'w')\n")
        said = self.sweep("wrap", "--rank", RANK, "--processes", 2, "--", sys.executable, "ranks.py", code=1)
        self.assertIn("wrap-ranks: invalid in ", said, "it reports nothing")
        self.assertEqual([row["outcome"] for row in json.loads(self.sweep("export", "json"))], ["invalid"])
        self.assertEqual(sorted(each.name for each in self.folder.glob("rank?of?")), ["rank0of2", "rank1of2"])

    def test_a_sweep_of_a_grid_keeps_its_grid(self):
        (self.folder / "grid.yaml").write_text("name: mine\nquestion: mine\nworkload: {command: [python3, train.py, ok]}\nbase: {hardware: cpu}\n"
                                               "measure: {warmup_steps: 1, steps: 4}\n")
        self.sweep("run", "grid.yaml", "--rank", RANK, "--quiet")
        self.wrap("ok", options=("--name", "mine"), code=2)
        self.assertEqual(self.rows("SELECT name, question FROM sweep"), [("mine", "mine")])
        self.wrap("ok", options=("--name", "other"))
        self.wrap("ok", options=("--name", "other"))

    def test_words_that_the_database_cannot_keep(self):
        self.assertEqual(subprocess.run([*map(os.fsencode, self.words("wrap", "--rank", RANK, "--", sys.executable, "train.py")), b"\xff"],
                                        cwd=self.folder, capture_output=True).returncode, 2)
        self.assertFalse((self.folder / "sweep.db").exists())

    def test_a_program_that_is_not_there(self):
        self.sweep("wrap", "--rank", RANK, "--", "/nowhere/program", code=1)

    def test_every_rank_of_a_launcher_is_followed(self):
        launcher = self.folder / "torchrun"
        launcher.write_text(f"#!{sys.executable}\nimport os, subprocess, sys\nfor rank in ('0', '1'):\n"
                            "    if subprocess.run([sys.executable, *sys.argv[2:]], env=dict(os.environ, RANK=rank)).returncode: sys.exit(1)\n")
        launcher.chmod(0o755)
        (self.folder / "first_only.py").write_text("import os, runpy, sys\nsys.argv[1] = sys.argv[1] if os.environ['RANK'] == '1' else 'ok'\n"
                                                   "runpy.run_path('train.py', run_name='__main__')\n")
        for mode, code, outcome in (("ok", 0, "ok"), ("oom", 1, "oom")):
            self.sweep("wrap", "--db", f"{mode}.db", "--rank", RANK, "--", launcher, "--nproc_per_node=2", "first_only.py", mode, code=code)
            (row,) = json.loads(self.sweep("export", "json", "--db", f"{mode}.db"))
            self.assertEqual((row["outcome"], row["gpus_per_node"]), (outcome, 2), row)
        self.sweep("wrap", "--db", "many.db", "--rank", RANK, "--", launcher, "--nproc_per_node=4096", "first_only.py", "ok")

    def test_an_interrupt_ends_everything(self):
        running = subprocess.Popen(self.words("wrap", "--rank", RANK, "--", sys.executable, "train.py", "hang"), cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mark = self.folder / "hangs"
        wait_for(lambda: mark.exists() and mark.read_text(), 120, "the program runs")
        self.assertGreater(len(working_in(self.folder)), 1)
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(timeout=120), 130)
        wait_for(lambda: not working_in(self.folder), 60, "nothing is left")


class InitTest(Folder):
    def init(self, *words):
        self.sweep("init", "--force", *words)
        text = (self.folder / "grid.yaml").read_text()
        self.assertNotIn("0 admitted", self.sweep("plan", "grid.yaml"), text)
        return text

    def test_every_recipe(self):
        for recipe in ("torchrun", "huggingface", "lightning", "deepspeed", "torchtitan", "megatron", "nanotron"):
            self.init(recipe)

    def test_a_command_line(self):
        text = self.init("--", "torchrun", "--nproc_per_node", "2", "train.py", "--lr", "3e-4", "--batch=8", "--name", "{x}")
        self.assertIn("micro_batch_size: [8, 16]", text)
        self.assertIn("gpus_per_node: 2", text)
        self.assertIn("train.py --lr 0.0003 --batch=8 --name {x}", self.sweep("plan", "grid.yaml"))
        self.assertIn("stop_after_steps: true", text, "nothing tells the script when to stop")
        self.assertNotIn("stop_after_steps", self.init("--", "torchrun", "--nproc_per_node", "2", "train.py", "--max_steps", "1000"))
        self.init("--", "python", "train.py", "--seed", "42", "--dp", "3")
        self.assertIn("micro_batch_size: [4, 8]", self.init("--", "python", "train.py", "--mbs", "4"))

    def test_launchers_get_the_module_before_the_script(self):
        for line, module in (("accelerate launch --multi_gpu --num_processes 2 train.py --per_device_train_batch_size 4", "-m"),
                             ("deepspeed --num_gpus 2 train.py --deepspeed ds.json", "--module")):
            text = self.init("--", *line.split())
            self.assertIn(f'"{module}", "sweep_trial", "train.py"', text)
            self.assertIn("name: train\n", text)
        self.assertNotIn("sweep_trial", self.init("--", "accelerate", "launch", "-m", "mine.train"))

    def test_no_axis_is_written_that_the_program_does_not_get(self):
        text = self.init("--", "python", "train.py", "--lr", "0.1")
        self.assertEqual([line for line in text.splitlines() if "micro_batch_size" in line and not line.startswith("#")], [])

    def test_a_configuration_file(self):
        (self.folder / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}')
        text = self.init("ds.json")
        self.assertIn("zero: 2", text)
        self.assertIn("micro_batch_size: [4, 8]", text)
        (self.folder / "t.toml").write_text("[training]\nlocal_batch_size = 2 # sequences\nseq_len = 2048\n")
        self.assertIn("seq_len: 2048", self.init("t.toml"))

    def test_what_is_there_stays(self):
        (self.folder / "grid.yaml").write_text("mine")
        self.sweep("init", "torchrun", code=2)
        self.assertEqual((self.folder / "grid.yaml").read_text(), "mine")
        self.sweep("init", "nowhere", code=2)

    def test_a_recipe_of_ones_own(self):
        (self.folder / "mine.yaml").write_text(
            "recipe: torchrun\ntrainer: mine\nscript: train.py\n"
            "flags:\n  --width: {value: \"{width}\"}\n  --recompute: {when: recompute == \"full\"}\n"
            "axes: {width: {type: integer, default: 4, unit: rows}}\n"
            "unsupported: [{when: tp > 1, why: \"tp {tp}\"}]\n")
        (self.folder / "g.yaml").write_text("name: g\nworkload: ./mine.yaml\nbase: {recompute: full}\ngrid: {width: [1, 2], tp: [1, 2]}\n")
        said = self.sweep("plan", "g.yaml")
        self.assertIn("2 unsupported", said)
        self.assertRegex(said, "train.py --width [12] --recompute")
        self.assertIn("recipe: ./mine.yaml", self.init("mine.yaml"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
