#!/usr/bin/env python3
"""python_test.py BIN_DIR: the Python module over programs of a build: frames of each library that is installed, errors, pages; the MCP server
where the package `mcp` is installed."""
import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest

os.environ["SWEEP_BIN"] = str(pathlib.Path(sys.argv[1]).resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import sweep_bench  # noqa: E402
from sweep_bench import mcp as server  # noqa: E402

TRAINER = """
import sys, time
import sweep_trial
for i in range(5):
    time.sleep(0.005)
    sweep_trial.step(tokens=int(sys.argv[1]))
    if sys.argv[1] == "4": raise MemoryError("too much")
"""


class PythonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-python-")
        folder = pathlib.Path(cls.temporary.name)
        (folder / "train.py").write_text(TRAINER)
        cls.grid = {"name": "p", "workload": {"command": [sys.executable, str(folder / "train.py"), "{micro_batch_size}"]}, "base": {"hardware": "cpu"},
                    "grid": {"micro_batch_size": [1, 2, 4]}, "measure": {"warmup_steps": 1, "steps": 3}}
        cls.db = str(folder / "p.db")
        cls.run_ = sweep_bench.run(cls.grid, db=cls.db, progress=False)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_frames_of_every_library_hold_the_same(self):
        columns = ["micro_batch_size", "outcome", "tokens_per_s"]
        expected = self.run_.results(columns, library="columns")
        self.assertEqual(sorted(zip(expected["micro_batch_size"], expected["outcome"])), [(1, "ok"), (2, "ok"), (4, "oom")])
        self.assertEqual(expected["tokens_per_s"].count(None), 1)
        for library in ("pandas", "polars", "pyarrow"):
            if importlib.util.find_spec(library) is None:
                continue
            with self.subTest(library):
                frame = self.run_.results(columns, library=library)
                self.assertEqual(list(frame.columns if library != "pyarrow" else frame.column_names), columns)
                sizes = frame["micro_batch_size"]
                self.assertEqual(sizes.to_pylist() if library == "pyarrow" else list(sizes), expected["micro_batch_size"])
        everything = sweep_bench.results(self.db, library="columns")
        self.assertGreater(len(everything), 100)

    def test_plan_and_answers(self):
        plan = sweep_bench.plan(self.grid)
        self.assertEqual((len(plan), len(plan.admitted), plan.name), (3, 3, "p"))
        self.assertIn("<table", plan._repr_html_())
        self.assertTrue(self.run_.answered)
        best = self.run_.best()[0]
        trial = best["winner"]["trial"]
        self.assertEqual(self.run_.explain(trial)["attempts"][-1]["result"]["outcome"], "ok")
        self.assertEqual([each["sweep"] for each in sweep_bench.sweeps(self.db)], ["p"])
        self.assertIn("<iframe", self.run_.heatmap()._repr_html_())
        self.assertIn("<html", self.run_.report().html)

    def test_errors_have_their_kind(self):
        for kind, act in (("unknown_name", lambda: sweep_bench.plan({"name": "x", "modell": "a"})),
                          ("not_found", lambda: sweep_bench.best("nobody", db=self.db)),
                          ("not_found", lambda: sweep_bench.results("/none.db")),
                          ("missing", lambda: sweep_bench.plan({"model": "a"}))):
            with self.subTest(kind), self.assertRaises(sweep_bench.SweepError) as caught:
                act()
            self.assertEqual(caught.exception.kind, kind)

    def test_the_server_runs_nothing_unplanned(self):
        grid = pathlib.Path(self.temporary.name) / "g.yaml"
        grid.write_text("name: g\nmodel: llama3-8b\nbase: {hardware: h100-sxm-80gb}\ngrid: {micro_batch_size: [1, 2]}\n")
        word = server.plan(str(grid))["word"]
        grid.write_text(grid.read_text().replace("[1, 2]", "[1, 2, 4]"))
        with self.assertRaises(ValueError):
            server.run(str(grid), word)
        if importlib.util.find_spec("mcp") is not None:
            self.assertEqual(server.server().name, "sweep")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
