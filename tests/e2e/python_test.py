#!/usr/bin/env python3
"""python_test.py BIN_DIR: the Python module over programs of a build: frames of each library that is installed, errors, pages; the MCP server
where the package `mcp` is installed."""
import contextlib
import importlib
import importlib.util
import io
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

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

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples" / "notebook" / "notebook.ipynb"
# Runs the cells as a notebook does: of each, what its last expression shows.
SHOWS = """
import ast, json, sys
names, shown = {}, []
for cell in json.loads(sys.argv[1]):
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
print(json.dumps(shown))
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

    def test_every_column_holds_what_the_view_holds(self):
        everything = sweep_bench.results(self.db, library="columns")
        self.assertGreater(len(everything), 100)
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            cursor = db.execute("select * from results")
            names = [each[0] for each in cursor.description]
            view = {row[names.index("trial")]: dict(zip(names, row)) for row in cursor}
        self.assertEqual(len(view), 3)
        for at, trial in enumerate(everything["trial"]):
            for name in set(everything) & set(names) - {"finished_at"}:  # the view has no milliseconds
                self.assertEqual(everything[name][at], view[trial][name], name)

    def test_axes_of_a_grids_own_are_columns(self):
        folder = pathlib.Path(self.temporary.name)
        db = str(folder / "own.db")
        for axis, values in (("lr", (0.5, 1)), ("kind", ("x", "y"))):
            rows = folder / f"{axis}.csv"
            rows.write_text(f"model,mbs,dp,tok_s_gpu,outcome,{axis}\na,1,8,10,ok,{values[0]}\na,2,8,20,ok,{values[1]}\n")
            subprocess.run([sweep_bench.program("sweep"), "import", str(rows), "--sweep", axis, "--db", db, "--set", "seq_len=4096", "--set",
                            "precision=bf16", "--hardware", "h100-sxm-80gb", "--map", f"{axis}=label:{axis}"], check=True, capture_output=True)
        for library in ("columns", "pandas", "polars", "pyarrow"):
            if library != "columns" and importlib.util.find_spec(library) is None:
                continue
            with self.subTest(library):
                frame = sweep_bench.results(db, library=library)
                columns = {name: frame[name].to_pylist() if library == "pyarrow" else list(frame[name]) for name in ("lr", "kind")}
                self.assertEqual(len(columns["lr"]), 4)
                self.assertEqual(sorted(each for each in columns["lr"] if each in (0.5, 1)), [0.5, 1])
                self.assertEqual(sorted(each for each in columns["kind"] if each in ("x", "y")), ["x", "y"])
                self.assertEqual(sorted(sweep_bench.results(db, "lr", ["trial", "lr"], library="columns")["lr"]), [0.5, 1])

    def test_an_unknown_column_is_named(self):
        with self.assertRaises(sweep_bench.SweepError) as caught:
            self.run_.results(["trial", "step_mss"], library="columns")
        self.assertEqual(caught.exception.kind, "unknown_name")

    def test_parquet_and_arrow_files_hold_the_frame(self):
        folder, columns = pathlib.Path(self.temporary.name), ["trial", "micro_batch_size", "tokens_per_s", "peak_allocated_bytes"]
        environment = dict(os.environ, SWEEP_PYTHON=sys.executable, PYTHONPATH=os.pathsep.join(sys.path))
        for kind in ("parquet", "arrow"):
            words = [sweep_bench.program("sweep"), "export", kind, "--db", self.db, "--columns", ",".join(columns)]
            self.assertEqual(subprocess.run(words, capture_output=True, env=environment).returncode, 2, "no file is named")
            file = folder / f"r.{kind}"
            done = subprocess.run([*words, "-o", str(file)], capture_output=True, text=True, env=environment)
            if importlib.util.find_spec("pyarrow") is None:
                self.assertEqual((done.returncode, "pip install" in done.stderr, file.exists()), (2, True, False), done.stderr)
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            read = importlib.import_module("pyarrow.parquet").read_table if kind == "parquet" else \
                importlib.import_module("pyarrow.feather").read_table
            self.assertEqual(read(file).to_pydict(), self.run_.results(columns, library="columns"))

    def test_a_frame_of_a_library_that_is_not_here_says_what_to_install(self):
        with unittest.mock.patch("importlib.util.find_spec", return_value=None), self.assertRaises(sweep_bench.SweepError) as caught:
            self.run_.results(library="polars")
        self.assertIn("pip install polars", str(caught.exception))

    def test_a_bar_shows_the_progress(self):
        for hidden in ({}, {"tqdm.auto": None}):  # with tqdm, where it is installed, and without
            shown = io.StringIO()
            with unittest.mock.patch.dict(sys.modules, hidden), contextlib.redirect_stderr(shown):
                sweep_bench.run(self.grid, db=self.db)
            self.assertRegex(shown.getvalue(), r"3(/| of )3")

    def test_the_notebook_runs_and_shows_each_cell(self):
        cells = ["".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
        folder = pathlib.Path(self.temporary.name) / "notebook"
        folder.mkdir()
        done = subprocess.run([sys.executable, "-c", SHOWS, json.dumps(cells)], cwd=folder, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((folder / "notebook.html").exists())
        shown = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual([kind for kind in ("<table", "<iframe") if any(kind in each for each in shown)], ["<table", "<iframe"])

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
