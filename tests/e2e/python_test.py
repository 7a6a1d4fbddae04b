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
import resource
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


# Waits until a pipe with a name is opened for writing.
WAITS = "import sys, sweep_trial\nopen(sys.argv[1]).read()\nfor _ in range(3): sweep_trial.step(tokens=1)\n"
IN_A_NOTEBOOK = """
import sys, types, warnings
warnings.simplefilter("always")
shell = types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules.update({"IPython": types.SimpleNamespace(get_ipython=lambda: shell), "ipykernel.zmqshell": None})
from sweep_bench import _running
_running._bar("x").close()
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
            for name in set(everything) & set(names):
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

    def test_a_column_keeps_its_type_where_no_trial_has_a_value(self):
        columns = ["rehearsed", "packing", "throttle", "memory_cap_bytes", "outcome"]
        lists = self.run_.results(columns, library="columns")
        self.assertEqual([lists[name] for name in columns[:4]], [[False] * 3, [None] * 3, [None] * 3, [None] * 3])
        self.assertIs(lists["rehearsed"][0], False)
        types = {"pyarrow": ["bool", "bool", "string", "int64"], "polars": ["Boolean", "Boolean", "String", "Int64"],
                 "pandas": ["bool", "boolean", None, "float64"]}  # None: as a column of words that it has
        for library, wanted in types.items():
            if importlib.util.find_spec(library) is None:
                continue
            with self.subTest(library):
                frame = self.run_.results(columns, library=library)
                of = {"pyarrow": lambda name: frame.schema.field(name).type, "polars": lambda name: frame[name].dtype,
                      "pandas": lambda name: frame[name].dtype}[library]
                found = [str(of(name)) for name in columns]
                self.assertEqual(found[:4], [each or found[4] for each in wanted])

    def test_an_unknown_column_is_named(self):
        with self.assertRaises(sweep_bench.SweepError) as caught:
            self.run_.results(["trial", "step_mss"], library="columns")
        self.assertEqual(caught.exception.kind, "unknown_name")

    def test_columns_are_named_once(self):
        self.assertEqual(list(self.run_.results("trial", library="columns")), ["trial"])
        for columns in ([], ["trial", "outcome", "trial"]):
            with self.subTest(columns), self.assertRaises(sweep_bench.SweepError) as caught:
                self.run_.results(columns, library="columns")
            self.assertEqual(caught.exception.kind, "invalid_value")

    def test_parquet_and_arrow_files_hold_the_frame(self):
        folder, columns = pathlib.Path(self.temporary.name), ["trial", "micro_batch_size", "tokens_per_s", "peak_allocated_bytes"]
        environment = dict(os.environ, SWEEP_PYTHON=sys.executable, PYTHONPATH=os.pathsep.join(sys.path))
        for kind in ("parquet", "arrow"):
            words = [sweep_bench.program("sweep"), "export", kind, "--db", self.db, "--columns", ",".join(columns)]
            self.assertEqual(subprocess.run(words, capture_output=True, env=environment).returncode, 2, "no file is named")
            unknown = subprocess.run([*words[:-1], "trial,nosuch", "-o", str(folder / "n")], capture_output=True, text=True, env=environment)
            self.assertEqual((unknown.returncode, "pip install" in unknown.stderr), (2, False), unknown.stderr)
            file = folder / f"r.{kind}"
            done = subprocess.run([*words, "-o", str(file)], capture_output=True, text=True, env=environment)
            if importlib.util.find_spec("pyarrow") is None:
                self.assertEqual((done.returncode, "pip install" in done.stderr, file.exists()), (2, True, False), done.stderr)
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            read = importlib.import_module("pyarrow.parquet").read_table if kind == "parquet" else \
                importlib.import_module("pyarrow.feather").read_table
            self.assertEqual(read(file).to_pydict(), self.run_.results(columns, library="columns"))
            nowhere = subprocess.run([*words, "-o", str(folder / "none" / "x")], capture_output=True, text=True, env=environment)
            self.assertEqual((nowhere.returncode, "pip install" in nowhere.stderr), (2, False), nowhere.stderr)
            full = subprocess.run([*words, "-o", str(file)], capture_output=True, text=True, env=environment,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
            self.assertEqual((full.returncode, [each.name for each in folder.glob(f"r.{kind}*")]), (4, [file.name]), full.stderr)

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

    def test_a_run_plans_once(self):
        with unittest.mock.patch("subprocess.run", side_effect=AssertionError("another command")):
            self.assertEqual(sweep_bench.run(self.grid, db=self.db, progress=False).sweep, "p")

    def test_a_bar_warns_of_nothing_in_a_notebook_without_widgets(self):
        done = subprocess.run([sys.executable, "-c", IN_A_NOTEBOOK], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
        self.assertEqual((done.returncode, "Warning" in done.stderr), (0, False), done.stderr)

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

    def test_the_program_says_the_name_of_a_grid(self):
        rest = "\n".join(f"{key}: {json.dumps(value)}" for key, value in self.grid.items() if key != "name")
        file = pathlib.Path(self.temporary.name) / "named.yaml"
        for name, text in (("quoted", '"name": quoted'), ("spaced", "name : spaced"), ("marked", "\ufeffname: marked"), ("a", "name: &x a")):
            with self.subTest(name):
                file.write_text(f"{text}\n{rest}\n", encoding="utf-8")
                self.assertEqual(sweep_bench.plan(file).name, name)
        run = sweep_bench.run(file, db=pathlib.Path(self.temporary.name) / "named.db", progress=False)
        self.assertEqual((run.sweep, run.answered), ("a", True))

    def test_time_that_nothing_predicts_is_unknown(self):
        grid = pathlib.Path(self.temporary.name) / "untimed.json"
        grid.write_text(json.dumps(self.grid))
        none = str(grid.with_suffix(".db"))
        for seconds, untimed, plan in (
                (None, 3, sweep_bench.plan(grid, db=none)),
                (2.0, 1, sweep_bench.Plan("x", [{"admitted": True, "predicted_seconds": each} for each in (2.0, None)])),
                (0.0, 0, sweep_bench.Plan("x", [{"admitted": False, "predicted_seconds": None}]))):
            self.assertEqual((plan.predicted_seconds, plan.untimed), (seconds, untimed))
            self.assertEqual(" 0 s" in repr(plan), seconds == 0)
        planned = server.plan(str(grid), db=none)
        self.assertEqual((planned["predicted_seconds"], planned["untimed"]), (None, 3))

    def test_a_run_in_the_background_has_no_answers_yet(self):
        folder = pathlib.Path(self.temporary.name)
        (folder / "waits.py").write_text(WAITS)
        os.mkfifo(folder / "pipe")
        grid = folder / "b.yaml"
        grid.write_text(json.dumps({**self.grid, "name": "b", "grid": {"micro_batch_size": [1]},
                                    "workload": {"command": [sys.executable, str(folder / "waits.py"), str(folder / "pipe")]}}))
        run = sweep_bench.run(grid, db=folder / "b.db", progress=False, options=["--detach"])
        self.assertFalse(run.answered)
        with open(folder / "pipe", "w"):
            pass
        self.assertTrue(sweep_bench.run(grid, db=folder / "b.db", progress=False).answered)
        self.assertTrue(run.answered)

    def test_errors_have_their_kind(self):
        for kind, act in (("unknown_name", lambda: sweep_bench.plan({"name": "x", "modell": "a"})),
                          ("unknown_name", lambda: sweep_bench.run({"name": "x", "modell": "a"}, db=self.db)),
                          ("invalid_value", lambda: sweep_bench.run(self.grid, db=self.db, options=["--slots", "x"])),
                          ("invalid_value", lambda: sweep_bench.run(self.grid, db=self.db, options=["--help"])),
                          ("not_found", lambda: sweep_bench.run("nope.yaml", db=self.db)),
                          ("not_found", lambda: sweep_bench.plan("--help")),
                          ("not_found", lambda: sweep_bench.best("nobody", db=self.db)),
                          ("not_found", lambda: sweep_bench.heatmap("nobody", db=self.db)),
                          ("invalid_value", lambda: sweep_bench.heatmap(value="nothing", db=self.db)),
                          ("not_found", lambda: sweep_bench.report("-h", db=self.db)),
                          ("invalid_value", lambda: sweep_bench.explain("--help", db=self.db)),
                          ("not_found", lambda: sweep_bench.results(self.db, "--help")),
                          ("not_found", lambda: sweep_bench.results("/none.db")),
                          ("not_found", lambda: server.stop("--now", db=self.db)),
                          ("missing", lambda: sweep_bench.plan({"model": "a"}))):
            with self.subTest(kind), self.assertRaises(sweep_bench.SweepError) as caught:
                act()
            self.assertEqual(caught.exception.kind, kind)

    def test_programs_that_are_not_where_they_are_said_to_be(self):
        with unittest.mock.patch.dict(os.environ, SWEEP_BIN="/none"):
            for act in (lambda: sweep_bench.plan(self.grid), lambda: sweep_bench.run(self.grid), lambda: self.run_.results()):
                with self.assertRaises(sweep_bench.SweepError) as caught:
                    act()
                self.assertEqual(caught.exception.kind, "not_found")

    def test_the_server_runs_what_was_planned_and_nothing_else(self):
        folder = pathlib.Path(self.temporary.name)
        grid, recipe, db = folder / "g.yaml", folder / "recipe.yaml", str(folder / "g.db")
        recipe.write_text(json.dumps(self.grid["workload"]))
        grid.write_text(json.dumps({**self.grid, "name": "g", "workload": "./recipe.yaml"}))
        word = server.plan(str(grid), db=db)["word"]
        for others in ({"rehearse": True, "db": db}, {"db": self.db}):
            with self.assertRaises(ValueError):
                server.run(str(grid), word, **others)
        for file, old, new in ((grid, "[1, 2, 4]", "[1, 2]"), (recipe, "train.py", "other.py")):
            before = file.read_text()
            file.write_text(before.replace(old, new))
            with self.subTest(file), self.assertRaises(ValueError):
                server.run(str(grid), word, db=db)
            file.write_text(before)
        self.assertFalse(pathlib.Path(db).exists())
        self.assertFalse(sweep_bench.Run("g", db).answered, "it may not have begun")
        with unittest.mock.patch.dict(os.environ, SWEEP_DB=db):
            self.assertEqual(server.plan(str(grid))["word"], word)
            server.run(str(grid), word)
            self.assertTrue(sweep_bench.run(grid, progress=False).answered)
            self.assertEqual([each["sweep"] for each in server.sweeps()], ["g"])
            self.assertIn("not running", server.stop("g"))

    def test_the_servers_queries_have_limits(self):
        rows = "with recursive n(i) as (select 1 union all select i + 1 from n {}) select {} from n"
        self.assertEqual(server.query(rows.format("where i < 3", "i"), self.db), {"rows": [{"i": 1}, {"i": 2}, {"i": 3}], "cut": False})
        many = server.query(rows.format("where i < 501", "i"), self.db)
        self.assertEqual((len(many["rows"]), many["rows"][-1], many["cut"]), (500, {"i": 500}, True))
        wide = server.query(rows.format("where i < 300", "hex(zeroblob(1000)) as wide"), self.db)
        self.assertEqual((0 < len(wide["rows"]) < 50, wide["cut"]), (True, True))
        with unittest.mock.patch.object(server, "MOST_SECONDS", 0.1), self.assertRaises(sweep_bench.SweepError):
            server.query(rows.format("", "count(*)"), self.db)
        with self.assertRaises(sweep_bench.SweepError):
            server.query("--list", self.db)

    @unittest.skipIf(importlib.util.find_spec("mcp") is None, "the package mcp is not installed")
    def test_the_server_has_its_tools(self):
        self.assertEqual(server.server().name, "sweep")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
