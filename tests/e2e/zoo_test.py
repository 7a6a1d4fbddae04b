#!/usr/bin/env python3
"""zoo_test.py BIN_DIR RANK_PROGRAM: programs that go wrong, or look so, each in its own way (trainers/zoo.py, zoo_torch.py), as trials of
sweeps: each has the outcome of what happened, none is ok without a figure, and no process is left. RANK_PROGRAM is never started."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

import database
import sweep_folder
from processes import wait_for, working_in

HERE = pathlib.Path(__file__).resolve().parent
BIN, RANK = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
GRID = """name: zoo
workload:
  command: {command}
  axes: {{case: {{type: text, default: none}}}}
  env: {{OMP_NUM_THREADS: "1"}}
  processes: {processes}
{more}
base: {{hardware: cpu, gpus_per_node: {ranks}}}
grid: {{case: {cases}}}
measure: {{warmup_steps: 2, steps: 6}}
limits: {{retries_crash: 0, hang_seconds: {hang}, start_seconds: 200}}
launch: {{local: {{slots: {slots}}}}}
"""
PATTERNS = r"""  log_patterns: {step: 'step (\d+)', step_ms: 'took ([0-9.]+) ms'}"""


class Zoo(sweep_folder.SweepFolder):
    def results(self, cases, script="zoo.py", words=(), ranks=1, slots=4, processes="per_rank", more="", hang=6):
        """Case -> its row, after one sweep of all."""
        command = json.dumps([sys.executable, *words, str(HERE / "trainers" / script), "{case}"])
        (self.folder / "grid.yaml").write_text(GRID.format(command=command, processes=processes, more=more, ranks=ranks, cases=json.dumps(cases),
                                                           slots=slots, hang=hang))
        database_file = self.folder / f"{len(list(self.folder.glob('*.db')))}.db"
        subprocess.run([str(BIN / "sweep"), "run", str(self.folder / "grid.yaml"), "--db", str(database_file), "--rank", str(RANK), "--quiet"],
                       capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
        done = subprocess.run([str(BIN / "sweep"), "export", "json", "--db", str(database_file)], capture_output=True, text=True, timeout=60)
        rows = {row["labels"]["case"]: row for row in json.loads(done.stdout)}
        self.assertEqual(sorted(rows), sorted(cases), done.stderr)
        self.causes = dict(database.rows(database_file, "select json_extract(labels, '$.case'), cause_rank from results"))
        return rows

    def outcomes(self, rows):
        return {case: row["outcome"] for case, row in rows.items()}

    def assert_never_ok_without_a_figure(self, rows):
        empty = [case for case, row in rows.items() if row["outcome"] == "ok" and not (row["step_ms"] and row["timed_steps"])]
        self.assertEqual(empty, [], {case: (row["outcome"], row["step_ms"], row["reason"]) for case, row in rows.items()})

    def tearDown(self):
        wait_for(lambda: not working_in(self.folder), 60, "no process of the zoo is left")


class PlainTest(Zoo):
    def test_one_process(self):
        want = {"silent": "invalid", "ignores_sigterm": "hang", "segv": "crash", "daemon": "ok", "reexec": "ok", "slow_start": "ok",
                "reads_stdin": "crash", "exit_137": "crash", "kills_itself": "crash", "memory_error": "oom", "few_steps": "invalid",
                "nan_loss": "ok", "nan_in_json": "invalid", "slow_exit": "ok", "starts_itself_with_an_empty_environment": "ok"}
        rows = self.results(list(want))
        self.assertEqual(self.outcomes(rows), want, {case: row["reason"] for case, row in rows.items()})
        self.assert_never_ok_without_a_figure(rows)
        self.assertTrue(all(row["step_ms"] >= 20 for row in rows.values() if row["outcome"] == "ok"))

    def test_of_two_ranks_the_second_crashes(self):
        rows = self.results(["crash"], ranks=2)
        self.assertEqual((self.outcomes(rows), self.causes), ({"crash": "crash"}, {"crash": 1}))


class LogTest(Zoo):
    def test_one_process(self):
        rows = self.results(["log_of_few_steps", "log_huge"], more=PATTERNS)
        self.assert_never_ok_without_a_figure(rows)
        self.assertNotEqual(rows["log_of_few_steps"]["outcome"], "ok", "both steps were warm-up")
        self.assertEqual((rows["log_huge"]["outcome"], rows["log_huge"]["step_ms"]), ("ok", 20.0), "its steps are at the end of 46 MB")

    def test_a_summary_and_a_bar(self):
        rows = self.results(["log_summary"], more="""  log_patterns: {step_ms: '"step_ms": ([0-9.]+)'}""")
        rows |= self.results(["log_bar"], more=r"""  log_patterns: {step: '(\d+)/8', step_s: ', ([0-9.]+)it/s'}""")
        self.assert_never_ok_without_a_figure(rows)

    def test_of_two_ranks_the_first_alone_logs(self):
        self.assert_never_ok_without_a_figure(self.results(["log_of_rank_0"], ranks=2, more=PATTERNS))


@unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not installed")
class TorchTest(Zoo):
    def test_one_process(self):
        rows = self.results(["cpu_oom", "scaled"], script="zoo_torch.py", words=("-m", "sweep_trial"), hang=120)
        self.assertEqual(self.outcomes(rows), {"cpu_oom": "crash", "scaled": "ok"}, {case: row["reason"] for case, row in rows.items()})
        self.assertEqual(rows["scaled"]["timed_steps"], 6, "a step whose gradients are not finite is one")

    def test_a_rank_that_is_missing_in_a_collective(self):
        rows = self.results(["hang"], script="zoo_torch.py", words=("-m", "sweep_trial"), ranks=2)
        self.assertEqual((self.outcomes(rows), self.causes), ({"hang": "hang"}, {"hang": 1}), rows["hang"]["reason"])

    def test_ranks_of_multiprocessing(self):
        rows = self.results(["spawn"], script="zoo_torch.py", words=("-m", "sweep_trial"), ranks=2, processes="per_node", hang=120)
        self.assertEqual((rows["spawn"]["outcome"], rows["spawn"]["timed_steps"]), ("ok", 6), rows["spawn"]["reason"])


if __name__ == "__main__":
    if "TorchTest" in sys.argv and importlib.util.find_spec("torch") is None:
        sys.exit(77)
    unittest.main(verbosity=2)
