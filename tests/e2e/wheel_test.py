#!/usr/bin/env python3
"""wheel_test.py SOURCE CUDA_HEADERS [TORCH]: the wheel of the torch-free half as a user meets it: built, installed in a fresh virtual environment,
asked for a plan, a wrapped script, a rehearsal, and from Python. CUDA_HEADERS is a site-packages folder, or empty: no rehearsal then.
With TORCH, the folder of torch 2.11, the wheel of the built-in step too, beside links to that torch and to CUDA's libraries."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE, HEADERS = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
TORCH = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
SKIP = 77
MOST_BYTES = 15_000_000
TRAINER = """
import sys, time
import sweep_trial
for i in range(6):
    time.sleep(0.01)
    sweep_trial.step(tokens=int(sys.argv[1]))
"""
# Speaks to the driver as a program that links CUDA does: a phantom answers.
ON_GPU = """
import ctypes, sys
import sweep_trial
cuda = ctypes.CDLL("libcuda.so.1")
count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
free, total, memory = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value >= 1, count.value
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0 and total.value > 70 << 30, total.value
for _ in range(4):
    if cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(int(sys.argv[1]) << 30)) != 0:
        raise MemoryError("CUDA out of memory")
    sweep_trial.step(tokens=1)
"""
GRID = """name: gpu
workload:
  command: [{python}, gpu.py, "{{gigabytes}}"]
  axes: {{gigabytes: {{type: integer, default: 1, unit: GiB}}}}
base: {{hardware: h100-sxm-80gb, gpus_per_node: 1}}
grid: {{gigabytes: [1, 30]}}
measure: {{warmup_steps: 1, steps: 2}}
limits: {{retries_crash: 0}}
"""
STEP_GRID = """name: step
model: tiny-llama
base: {hardware: cpu, gpus_per_node: 1}
grid: {seq_len: [64]}
measure: {warmup_steps: 1, steps: 2}
"""
FROM_PYTHON = """
import json, sys
import sweep_bench as sb
grid = {"name": "own", "workload": {"command": [sys.executable, "train.py", "{micro_batch_size}"]}, "base": {"hardware": "cpu"},
        "grid": {"micro_batch_size": [1, 2]}, "measure": {"warmup_steps": 1, "steps": 4}}
assert len(sb.plan(grid).admitted) == 2
run = sb.run(grid, db="own.db", progress=False)
rows = run.results(["micro_batch_size", "outcome", "tokens_per_s"], library="columns")
try:
    sb.plan({"name": "x", "modell": "a"})
except sb.SweepError as error:
    kind = error.kind
page = run.heatmap()
print(json.dumps({"answered": run.answered, "outcomes": rows["outcome"], "rates": rows["tokens_per_s"], "kind": kind, "best": run.best()[0]["value"],
                  "sweeps": [each["sweep"] for each in sb.sweeps("own.db")], "page": len(page.html), "frame": page._repr_html_()[:7]}))
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-wheel-")
        cls.folder = pathlib.Path(cls.temporary.name)
        targets = ["sweep", "sweep-agent"] + (["sweep_phantom_cuda", "sweep_phantom_nvidia-ml"] if HEADERS else [])
        cls.build(SOURCE, f"cmake.define.SWEEP_CUDA_HEADERS={HEADERS}", f"build.targets={';'.join(targets)}")
        cls.wheel, = cls.folder.glob("sweep_bench-*-py3-none-*.whl")
        cls.venv = cls.folder / "venv"
        cls.run_words(sys.executable, "-m", "venv", cls.venv)
        cls.python = cls.venv / "bin" / "python"
        cls.run_words(cls.python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", cls.wheel)
        cls.package = next(cls.venv.glob("lib/python3*/site-packages/sweep_bench"))
        (cls.folder / "train.py").write_text(TRAINER)
        (cls.folder / "gpu.py").write_text(ON_GPU)
        (cls.folder / "gpu.yaml").write_text(GRID.format(python=cls.python))

    @classmethod
    def build(cls, source, *settings):
        options = [word for setting in settings for word in ("-C", setting)]
        environment = dict(os.environ, CCACHE_BASEDIR=str(SOURCE), CCACHE_NOHASHDIR="1")
        environment.pop("CCACHE_DEPEND", None)  # by preprocessed texts, which do not know the folder: scripts/test has compiled the same
        cls.run_words(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", cls.folder, *options, source,
                      environment=environment, seconds=3000)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @staticmethod
    def run_words(*words, environment=None, seconds=300, folder=None, code=0):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment, timeout=seconds, cwd=folder)
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def sweep(self, *words, code=0):
        environment = {"PATH": f"{self.venv}/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        return self.run_words("sweep", *words, environment=environment, folder=self.folder, code=code)

    def rows(self, db, columns):
        return json.loads(self.sweep("query", f"select {columns} from results order by 1", "--db", db, "--json").stdout)

    def test_holds_what_is_named_and_no_more(self):
        self.assertLessEqual(self.wheel.stat().st_size, MOST_BYTES)
        names = zipfile.ZipFile(self.wheel).namelist()
        for name in ("sweep_trial.py", "sweep_bench/bin/sweep", "sweep_bench/bin/sweep-agent", "sweep_bench/schema/grid.schema.json",
                     "sweep_bench/recipes/torchtitan/recipe.yaml", "sweep_bench/sweeps/llama-8b.yaml", "sweep_bench/py.typed"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if "torch" in name and not name.startswith("sweep_bench/recipes/")])
        for program in ("sweep", "sweep-agent"):
            said = subprocess.run(["readelf", "-d", self.package / "bin" / program], capture_output=True, text=True, check=True).stdout
            needed = [line.split("[")[1].rstrip("]") for line in said.splitlines() if "(NEEDED)" in line]
            self.assertFalse([name for name in needed if not name.startswith(("libc.so", "libm.so", "ld-linux"))], program)

    def test_plans_and_checks_the_machine(self):
        lines = self.sweep("plan", self.package / "sweeps" / "llama-8b.yaml", "--json").stdout.splitlines()
        self.assertGreater(sum(json.loads(line)["admitted"] for line in lines), 0)
        told = json.loads(self.sweep("doctor", "--json").stdout)
        health = {each["what"]: each["health"] for each in told["findings"]}
        self.assertEqual((health["sweep-agent"], health["sweep-rank"]), ("ok", "warning"))
        self.assertEqual(health["rehearsals"], "ok" if HEADERS else "warning")

    def test_wraps_a_script(self):
        self.sweep("wrap", "--db", "wrap.db", "--", self.python, "train.py", "8")
        self.assertEqual([row["outcome"] for row in self.rows("wrap.db", "outcome")], ["ok"])

    def test_rehearses_a_command(self):
        if not HEADERS:
            self.skipTest("no CUDA headers were named")
        self.sweep("run", "gpu.yaml", "--rehearse", "--db", "gpu.db")
        rows = self.rows("gpu.db", "json_extract(labels, '$.gigabytes') as gigabytes, outcome")
        self.assertEqual(rows, [{"gigabytes": 1, "outcome": "ok"}, {"gigabytes": 30, "outcome": "oom"}])

    def test_answers_python(self):
        told = json.loads(self.run_words(self.python, "-c", FROM_PYTHON, folder=self.folder).stdout)
        self.assertEqual((told["answered"], told["outcomes"], told["kind"], told["sweeps"]), (True, ["ok", "ok"], "unknown_name", ["own"]))
        self.assertEqual(told["frame"], "<iframe")
        self.assertGreater(min(told["rates"]), 0)
        self.assertGreater(told["page"], 10_000)

    def test_the_notebook_runs(self):
        book = json.loads((SOURCE / "examples" / "notebook" / "notebook.ipynb").read_text())
        cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
        own = self.folder / "notebook"
        own.mkdir()
        self.run_words(self.python, "-c", "\n".join(cells), folder=own)
        self.assertTrue((own / "notebook.html").exists())

    def test_the_wheel_of_the_step_asks_for_this_one_and_for_one_torch(self):
        folder = self.folder / "metadata"
        folder.mkdir()
        hook = f"from scikit_build_core.build import prepare_metadata_for_build_wheel as p; print(p({str(folder)!r}))"
        self.run_words(sys.executable, "-c", hook, folder=SOURCE / "python" / "rank")
        metadata, = folder.glob("*.dist-info/METADATA")
        wanted = {line.partition(": ")[2] for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist")}
        self.assertEqual(wanted, {"sweep-bench", "torch==2.11.*"})

    if TORCH:
        def test_the_built_in_step_comes_with_its_own_wheel(self):
            self.build(SOURCE / "python" / "rank", f"cmake.define.SWEEP_TORCH={TORCH}")
            wheel, = self.folder.glob("sweep_bench_rank-*-py3-none-*.whl")
            names = set(zipfile.ZipFile(wheel).namelist())
            self.assertIn("sweep_bench/bin/sweep-rank", names)
            both = {name for name in names & set(zipfile.ZipFile(self.wheel).namelist()) if not name.endswith("/")}
            self.assertFalse(both, "files that both wheels hold")
            site = self.package.parent
            for name in ("torch", "nvidia"):
                (site / name).symlink_to(TORCH.parent / name)
            self.run_words(self.python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
            try:
                for name in (name for name in names if name.startswith("sweep_bench/bin/")):
                    said = self.run_words("readelf", "-d", site / name).stdout
                    self.assertIn("RPATH", said, name)
                    self.assertIn("[$ORIGIN/../../torch/lib:$ORIGIN/../../nvidia/cu13/lib]", said, name)
                told = json.loads(self.sweep("doctor", "--json").stdout)
                self.assertIn(("sweep-rank", "ok"), {(each["what"], each["health"]) for each in told["findings"]})
                step = self.folder / "built_in.yaml"
                step.write_text(STEP_GRID)
                self.sweep("run", step, "--db", "rank.db")
                self.assertEqual([row["outcome"] for row in self.rows("rank.db", "outcome")], ["ok"])
                if HEADERS:
                    step.write_text(STEP_GRID.replace("name: step", "name: gpu-step").replace("hardware: cpu", "hardware: h100-sxm-80gb"))
                    self.sweep("run", step, "--rehearse", "--db", "rehearsed.db")
                    self.assertEqual([row["outcome"] for row in self.rows("rehearsed.db", "outcome")], ["ok"])
            finally:
                self.run_words(self.python, "-m", "pip", "uninstall", "-y", "sweep-bench-rank")

    def test_says_which_program_is_missing(self):
        grid = self.folder / "step.yaml"
        grid.write_text("name: step\nmodel: tiny-llama\ngrid: {seq_len: [64]}\n")
        self.assertIn(str(self.package / "bin" / "sweep-rank"), self.sweep("run", grid, "--db", "step.db", code=2).stderr)


if __name__ == "__main__":
    if importlib.util.find_spec("scikit_build_core") is None:
        print("skipped: scikit-build-core is not installed (scripts/setup test)")
        sys.exit(SKIP)
    unittest.main(argv=sys.argv[:1], verbosity=2)
