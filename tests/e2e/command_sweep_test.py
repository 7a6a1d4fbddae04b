#!/usr/bin/env python3
"""command_sweep_test.py BIN_DIR RANK_PROGRAM: whole sweeps of a program of the user's own: plan, run, answers, a killed orchestrator, the
grid of the best trial. The trainer needs no PyTorch; RANK_PROGRAM is never started."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

import database
import sweep_folder
from processes import wait_for

BIN, RANK = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
MODULE = pathlib.Path(__file__).resolve().parents[2] / "python" / "sweep_trial.py"

TRAINER = """
import json, sys, time
import sweep_trial
settings = json.load(open(sys.argv[1] + "/settings.json"))
for i in range(int(sys.argv[2])):
    if settings["fault"] == "oom" and i == 2:
        raise MemoryError("too much")
    time.sleep(settings["milliseconds"] / 1000)
    sweep_trial.step(tokens=settings["tokens"], loss=2.0)
"""
GRID = """
name: own
question: Which setting is fastest?
workload:
  command: [PYTHON, train.py, "{files}", "{total_steps}"]
  files:
    settings.json: '{{"milliseconds": {pause}, "tokens": {micro_batch_size}, "fault": "{fault}"}}'
  axes:
    pause: {type: number, default: 10, unit: ms}
    fault: {type: text, default: none}
base: {hardware: cpu}
grid:
  dp: [1, 2]
  pause: [2.5, 20]
  fault: [none, oom]
where: ["fault == 'none' or dp == 1"]
measure: {warmup_steps: 1, steps: 4}
limits: {retries_crash: 0}
launch: {local: {slots: 2}}
"""


# Acts like torchrun: it starts the ranks, and when one ended it ends the others and then itself. Rank 1 runs out of memory; only when its process
# is gone rank 0 notices that a peer is lost, and says so at once.
LAUNCHER = """
import os, subprocess, sys
import sweep_trial
if "RANK" not in os.environ:
    one = subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK="1"))
    one.wait()
    zero = subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK="0"))
    zero.wait()
    sys.exit(1)
for _ in range(3):
    sweep_trial.step(tokens=1)
raise MemoryError("too much") if os.environ["RANK"] == "1" else RuntimeError("a peer is gone")
"""


# Acts like torchrun; its rank 1 is killed without a message. Rank 0 waits for it, as in a collective, and reports at once that it is lost.
KILLED = """
import fcntl, os, signal, subprocess, sys, time
import sweep_trial
if "RANK" not in os.environ:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK=str(rank))) for rank in (0, 1)]
    sys.exit(max(abs(each.wait()) for each in ranks))
for _ in range(40):
    time.sleep(0.02)
    sweep_trial.step(tokens=1)
with open("peer", "w") as peer:
    if os.environ["RANK"] == "1":
        fcntl.flock(peer, fcntl.LOCK_EX)
        os.mkfifo("ready")
        open("ready", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    while not os.path.exists("ready"): pass
    open("ready").close()
    fcntl.flock(peer, fcntl.LOCK_EX)
    raise RuntimeError("Connection reset by peer")
"""

# Trainers that only print; of two ranks the first one alone, but where all is written by what they start.
PRINTS = """
import json, os, sys
mode, steps = sys.argv[1], int(sys.argv[2])
if os.environ["RANK"] == "0":
    if mode == "bar":
        for i in range(1, steps + 1): sys.stderr.write(f"\\r{i:3}%|##  | {i}/{steps} [00:01<00:01,  50.00it/s]")
    if mode == "lines":
        for i in range(1, steps + 1): print(f"step {i} | 20.0 ms | loss {9 - i}")
    if mode == "few": print("step 1 | 20.0 ms | loss 3")
    if mode == "mean": print(json.dumps({"step_ms": 20.0}))
    if mode == "nan":
        with open(os.environ["SWEEP_RESULTS_FILE"], "w") as out: out.write(json.dumps({"kind": "step", "step": 1, "loss": float("nan")}) + "\\n")
    if mode == "memory": sys.exit("torch.OutOfMemoryError: CUDA out of memory.")
"""
PRINTS_GRID = """
name: own
workload:
  command: [PYTHON, prints.py, "{mode}", "{total_steps}"]
  log_patterns: {step: '(?:^step | )([0-9]+)(?:/[0-9]+ \\[| \\|)', step_ms: '([0-9.]+) ms', steps_per_s: '([0-9.]+)it/s', loss: 'loss ([0-9.]+)',
                 mean_step_ms: '"step_ms": ([0-9.]+)'}
  axes: {mode: {type: text, default: lines}}
base: {hardware: cpu, dp: 2}
grid: {mode: [lines, bar, mean, few, nan, silent, memory]}
measure: {warmup_steps: 1, steps: 4}
limits: {retries_crash: 0}
launch: {local: {slots: 2}}
"""


class CommandSweepTest(sweep_folder.SweepFolder):
    bin = BIN

    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(TRAINER)
        shutil.copy(MODULE, self.folder)
        (self.folder / "grid.yaml").write_text(GRID.replace("PYTHON", json.dumps(sys.executable)))

    def results(self):
        return json.loads(self.sweep("export", "json", "--db", "r.db"))

    def test_a_sweep_of_commands_starts_no_rank_program(self):
        (self.folder / "grid.yaml").write_text(GRID.replace("PYTHON", json.dumps(sys.executable)).replace("fault: [none, oom]", "fault: [none]"))
        rank, started = self.folder / "rank", self.folder / "started"
        rank.write_text(f"#!/bin/sh\necho started >>'{started}'\n")
        rank.chmod(0o755)
        self.sweep("run", "grid.yaml", "--db", "r.db", "--rank", rank)
        self.assertEqual([row["outcome"] for row in self.results()], ["ok"] * 4)
        self.assertFalse(started.exists(), "neither a rank nor a zygote")

    def test_a_sweep_of_commands_needs_no_rank_program(self):
        (self.folder / "grid.yaml").write_text(GRID.replace("PYTHON", json.dumps(sys.executable)).replace("fault: [none, oom]", "fault: [none]"))
        for name in ("sweep", "sweep-agent"):
            shutil.copy(BIN / name, self.folder)
        done = subprocess.run([str(self.folder / "sweep"), "run", "grid.yaml", "--db", "r.db"], capture_output=True, text=True, timeout=300,
                              cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["outcome"] for row in self.results()], ["ok"] * 4)

    def test_a_sweep_of_an_own_program(self):
        self.assertIn("6 admitted", self.sweep("plan", "grid.yaml"))
        self.sweep("run", "grid.yaml", "--db", "r.db", "--rank", RANK)
        rows = self.results()
        rows = [row for row in rows if row["outcome"] != "pruned"]
        self.assertEqual(len(rows), 6)
        outcomes = {(row["dp"], row["labels"]["pause"], row["labels"]["fault"]): row["outcome"] for row in rows}
        for (_, _, fault), outcome in outcomes.items():
            self.assertEqual(outcome, "oom" if fault == "oom" else "ok")
        for row in rows:
            if row["outcome"] == "ok":
                self.assertGreaterEqual(row["step_ms"], row["labels"]["pause"])
                self.assertEqual(row["timed_steps"], 4)
                self.assertAlmostEqual(row["tokens_per_s"], row["dp"] * 1000 / row["step_ms"], delta=1)
                self.assertIsNone(row["forward_ms"])
                self.assertIsNone(row["mfu"])
        self.assertEqual(database.rows(self.folder / "r.db", "select distinct util_mean, load from attempt"), [(None, "")],
                         "the load of the process that waits for the program is not the program's")
        told = self.sweep("explain", rows[0]["trial"], "--db", "r.db")
        self.assertIn(f"pause={rows[0]['labels']['pause']}", told)
        self.assertRegex(told, r"(?m)^command +.*train.py")
        # Axes that the program never got are not known; its id is made of all of them.
        self.assertEqual([(row["optimizer"], row["seq_len"], row["precision"], row["global_batch_size"], row["micro_batch_size"])
                          for row in rows], [(None, None, None, None, 1)] * 6)
        self.assertEqual(database.rows(self.folder / "r.db", "select distinct optimizer, threads, hardware from results"), [(None, None, "cpu")])
        # The grid of the best trial is the same trial.
        best = self.sweep("best", "--db", "r.db", "--yaml")
        (self.folder / "best.yaml").write_text(best)
        planned = json.loads(self.sweep("plan", "best.yaml", "--json"))
        self.assertIn(planned["id"], [row["trial"] for row in rows if row["outcome"] == "ok"])
        self.assertIn('"pause":{"default":2.5,"type":"number","unit":"ms"}', best)
        self.assertIn('"fault":{"default":"none","type":"text"}', best)
        self.assertIn("2.5", self.sweep("table", "batch", "--db", "r.db"))

    def test_on_the_cpu_one_trial_runs_at_a_time_unless_slots_are_asked_for(self):
        (self.folder / "grid.yaml").write_text(GRID.replace("PYTHON", json.dumps(sys.executable)).replace("fault: [none, oom]", "fault: [none]")
                                               .replace("launch: {local: {slots: 2}}\n", ""))
        self.sweep("run", "grid.yaml", "--db", "r.db", "--rank", RANK)
        self.assertEqual(database.rows(self.folder / "r.db", "select distinct outcome, coalesce(neighbours, 0) from results"), [("ok", 0)])

    def test_of_a_launchers_ranks_the_first_to_fail_is_the_cause(self):
        (self.folder / "launcher.py").write_text(LAUNCHER)
        (self.folder / "grid.yaml").write_text(
            f"name: own\nworkload: {{command: [{json.dumps(sys.executable)}, launcher.py], processes: per_node}}\n"
            "base: {hardware: cpu, gpus_per_node: 2, dp: 2}\nmeasure: {warmup_steps: 1, steps: 4}\n"
            "limits: {retries_crash: 0}\nlaunch: {local: {slots: 2}}\n")
        self.sweep("run", "grid.yaml", "--db", "r.db", "--rank", RANK)
        self.assertEqual((self.results()[0]["outcome"], database.rows(self.folder / "r.db", "select rank from result")), ("oom", [(1,)]))

    def test_of_a_launchers_ranks_the_one_that_was_killed_is_the_cause(self):
        (self.folder / "launcher.py").write_text(KILLED)
        (self.folder / "grid.yaml").write_text(
            f"name: own\nworkload: {{command: [{json.dumps(sys.executable)}, launcher.py], processes: per_node}}\n"
            "base: {hardware: cpu, gpus_per_node: 2, dp: 2}\nmeasure: {warmup_steps: 1, steps: 4}\n"
            "limits: {retries_crash: 0}\nlaunch: {local: {slots: 2}}\n")
        self.sweep("run", "grid.yaml", "--db", "r.db", "--rank", RANK, code=1)
        self.assertEqual((self.results()[0]["outcome"], database.rows(self.folder / "r.db", "select rank, phase from result")),
                         ("crash", [(1, "step")]))

    def test_what_a_program_that_only_prints_ends_as(self):
        """A figure, or no `ok`."""
        (self.folder / "prints.py").write_text(PRINTS)
        (self.folder / "grid.yaml").write_text(PRINTS_GRID.replace("PYTHON", json.dumps(sys.executable)))
        self.sweep("run", "grid.yaml", "--db", "r.db", "--rank", RANK, code=1)
        rows = {row["labels"]["mode"]: row for row in self.results()}
        self.assertEqual({mode: (row["outcome"], row["step_ms"], row["timed_steps"], row["ranks_reported"]) for mode, row in rows.items()},
                         {"lines": ("ok", 20.0, 4, 1), "bar": ("ok", 20.0, 4, 1), "mean": ("ok", 20.0, 1, 1), "few": ("invalid", None, None, None),
                          "nan": ("invalid", None, None, None), "silent": ("invalid", None, None, None), "memory": ("crash", None, None, None)})
        self.assertEqual((rows["lines"]["loss_first"], rows["lines"]["loss_last"], rows["bar"]["loss_last"]), (8.0, 4.0, None))
        self.assertIn("-m sweep_trial", rows["memory"]["reason"])
        self.assertIn("1 lines of its report were skipped", rows["nan"]["reason"])
        crash = database.rows(self.folder / "r.db", "select evidence from result where rank = 0")
        self.assertEqual(json.loads(crash[0][0])["exit_code"], 1)

    def test_killed_and_resumed(self):
        first = subprocess.Popen(self.words("run", "grid.yaml", "--db", "r.db", "--rank", RANK), cwd=self.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        database_file = self.folder / "r.db"
        wait_for(lambda: database_file.exists() and database.rows(database_file, "SELECT 1 FROM attempt WHERE state = 2"), 60,
                 "an attempt runs")
        first.send_signal(signal.SIGKILL)
        first.wait()
        self.sweep("resume", "--db", "r.db", "--take-over", "--rank", RANK)
        self.assertEqual(database.rows(database_file, "SELECT count(*) FROM plan_entry WHERE state <> 3"), [(0,)])

    def test_a_copy_of_the_file_alone_holds_every_result_though_readers_are_attached(self):
        readers = []
        run = subprocess.Popen(self.words("run", "grid.yaml", "--db", "r.db", "--rank", RANK), cwd=self.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: subprocess.run(self.words("status", "--db", "r.db"), cwd=self.folder, check=False,
                                            capture_output=True).returncode == 0, 60, "the sweep is there")
            for words in (("serve",), ("status", "--watch")):
                readers.append(subprocess.Popen(self.words(*words, "--db", "r.db"), cwd=self.folder, stdout=subprocess.PIPE,
                                                stderr=subprocess.DEVNULL, text=True))
                self.assertTrue(readers[-1].stdout.readline(), words)
            said = run.communicate(timeout=300)[1]
            self.assertEqual(run.returncode, 0, said)
            (self.folder / "elsewhere").mkdir()
            shutil.copy(self.folder / "r.db", self.folder / "elsewhere")
            rows = json.loads(self.sweep("export", "json", "--db", "elsewhere/r.db"))
            self.assertEqual(sorted(row["outcome"] for row in rows if row["outcome"] != "pruned"), ["ok"] * 4 + ["oom"] * 2)
        finally:
            for reader in readers:
                reader.send_signal(signal.SIGINT)
                reader.communicate(timeout=60)
        self.assertEqual([file.name for file in self.folder.glob("r.db-*")], [], "the last reader leaves one file")


if __name__ == "__main__":
    unittest.main(verbosity=2)
