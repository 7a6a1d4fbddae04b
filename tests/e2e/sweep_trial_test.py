#!/usr/bin/env python3
"""sweep_trial_test.py: what python/sweep_trial.py writes of scripts that it is told nothing of, in their processes and in their children's."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types
import unittest
import unittest.mock
from typing import Any, ClassVar

MODULE = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path[:0] = [str(MODULE), str(pathlib.Path(__file__).resolve().parents[1] / "phantom")]
import forks  # noqa: E402
import sweep_folder  # noqa: E402
import sweep_trial  # noqa: E402

FORKS: Any = None
TRAINERS = pathlib.Path(__file__).resolve().parent / "trainers"

STEPS = f"""
import sys
sys.path.append({str(TRAINERS)!r})
import lean, torch
lean.without_compiler()
def train(rank=0, world=1, store="", fails=-1):
    import torch.distributed as dist
    if world > 1:
        dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    for i in range(4):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        if i == 2 and rank == fails: raise ValueError("a fault")
"""
SPAWN = STEPS + """
if __name__ == "__main__":
    torch.multiprocessing.start_processes(train, (2, sys.argv[2], int(sys.argv[3])), nprocs=2, start_method=sys.argv[1])
"""
# Lightning starts its other ranks so: the script again, without the module before it.
AGAIN = STEPS + """
import os, subprocess
if __name__ == "__main__":
    own = int(os.environ.get("LOCAL_RANK", "0"))
    other = own or subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, LOCAL_RANK="1"))
    train(own, 2, sys.argv[1])
    if not own: sys.exit(other.wait())
"""
SCALER = STEPS + """
model = torch.nn.Linear(8, 8)
optimizer, scaler = torch.optim.SGD(model.parameters(), lr=.1), torch.amp.GradScaler("cpu")
for i in range(4):
    scaler.scale(model(torch.full((2, 8), float("inf") if i in (0, 2) else 1.)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
"""
# Children that import PyTorch and train nothing, and one that has a sitecustomize of its own.
BYSTANDERS = STEPS + """
import os, pathlib, subprocess
hidden = pathlib.Path(sys.argv[1]); hidden.mkdir()
(hidden / "sitecustomize.py").write_text("import sys; sys.hidden = True")
more = dict(os.environ, RANK="1", PYTHONPATH=os.environ["PYTHONPATH"] + os.pathsep + str(hidden))
subprocess.run([sys.executable, "-c", "import sys, torch; assert sys.hidden; torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), 1)"], check=True, env=more)
train()
"""


class Lines(sweep_folder.SweepFolder):
    def run_script(self, text, *words, code=0, fresh=False, **env):
        """fresh: in a process that imports PyTorch itself, after this module; else in one that is forked with it."""
        script = self.folder / "script.py"
        script.write_text(text)
        env |= {"SWEEP_RESULTS_FILE": str(self.folder / "rank_{rank}.jsonl")}
        if fresh:
            process = subprocess.Popen([sys.executable, "-m", "sweep_trial", script, *map(str, words)], env={**os.environ, **env}, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        else:
            process = FORKS.start([MODULE / "sweep_trial.py", script, *words], self.folder, env)
        try:
            _, said = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        self.assertEqual(process.returncode != 0, code != 0, said)
        return {int(each.stem[5:]): [json.loads(line) for line in each.read_text().splitlines()] for each in self.folder.glob("rank_*.jsonl")}

    def steps(self, lines):
        return [line["step"] for line in lines if line["kind"] == "step"]


class OutputTest(Lines):
    def test_a_script_may_print_more_than_a_pipe_holds(self):
        self.assertEqual(self.steps(self.run_script("import sweep_trial\nprint('x' * (1 << 18), flush=True)\nsweep_trial.step()")[0]), [1])


class ChildrenTest(Lines):
    def test_every_process_that_multiprocessing_starts_is_a_rank(self):
        for method in ("spawn", "fork"):
            with self.subTest(method):
                ranks = self.run_script(SPAWN, method, self.folder / f"store-{method}", -1, fresh=method == "spawn")
                self.assertEqual(sorted(ranks), [0, 1])
                self.assertEqual([self.steps(ranks[rank]) for rank in ranks], [[1, 2, 3, 4]] * 2)
                self.assertEqual([[line["kind"] for line in ranks[rank]][-1] for rank in ranks], ["end", "end"])
                for each in self.folder.glob("rank_*"):
                    each.unlink()

    def test_the_error_of_a_child_is_its_own_ranks(self):
        ranks = self.run_script(SPAWN, "fork", self.folder / "store", 1, code=1)
        (error,) = [line for line in ranks[1] if line["kind"] == "error"]
        self.assertEqual((error["outcome"], error["type"], error["message"]), ("crash", "builtins.ValueError", "a fault"))
        self.assertNotIn("end", [line["kind"] for line in ranks[1]])

    def test_a_script_that_starts_itself_again(self):
        ranks = self.run_script(AGAIN, self.folder / "store")
        self.assertEqual([self.steps(ranks[rank]) for rank in (0, 1)], [[1, 2, 3, 4]] * 2)

    def test_children_that_train_nothing_say_nothing(self):
        ranks = self.run_script(BYSTANDERS, self.folder / "hidden")
        self.assertEqual(list(ranks), [0])
        self.assertEqual(self.steps(ranks[0]), [1, 2, 3, 4])


# Runs out of memory in the part of the step that is its argument.
NO_ROOM = """
import sys, torch
def no_room():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of ...")
class Tight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if sys.argv[1] == "forward": no_room()
        return x * 2
    @staticmethod
    def backward(ctx, g):
        if sys.argv[1] == "backward": no_room()
        return g
class Model(torch.nn.Linear):
    def forward(self, x):
        return Tight.apply(super().forward(x))
class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        super().step(closure)
        if sys.argv[1] == "optimizer": no_room()
model = Model(8, 8)
optimizer = Optimizer(model.parameters(), lr=.1)
for _ in range(2):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
"""


class OutOfMemoryTest(Lines):
    def test_the_part_of_the_step_and_the_bytes_are_told(self):
        for part in ("forward", "backward", "optimizer"):
            with self.subTest(part):
                error = self.run_script(NO_ROOM, part, code=1)[0][-1]  # runs of a script append to one file
                self.assertEqual((error["kind"], error["oom"], error["part"], error["asked_bytes"]),
                                 ("error", "device", part, 3 * 2**29))


class SkippedStepsTest(Lines):
    def test_a_step_whose_gradients_are_not_finite_counts(self):
        self.assertEqual(self.steps(self.run_script(SCALER)[0]), [1, 2, 3, 4])

    def test_the_same_of_deepspeed(self):
        ranks = self.run_script(STEPS + """
import types
class DeepSpeedEngine:
    def __init__(self, model, optimizer): self.model, self.basic_optimizer = model, optimizer
    def _take_model_step(self, overflow):
        if not overflow: self.basic_optimizer.step()
module = types.ModuleType("deepspeed.runtime.engine")
module.DeepSpeedEngine = DeepSpeedEngine
sys.modules["deepspeed.runtime.engine"] = module
model = torch.nn.Linear(8, 8)
engine = DeepSpeedEngine(model, torch.optim.SGD(model.parameters(), lr=.1))
for overflow in (True, False, True):
    model(torch.ones(2, 8)).sum().backward()
    engine._take_model_step(overflow)
""")
        self.assertEqual(self.steps(ranks[0]), [1, 2, 3])


class OptimizersTest(Lines):
    def test_steps_of_others_are_told(self):
        ranks = self.run_script(STEPS + """
a, b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
first, other = torch.optim.SGD(a.parameters(), lr=.1), torch.optim.SGD(b.parameters(), lr=.1)
for i in range(4):
    b(a(torch.ones(2, 8))).sum().backward()
    if i % 2 == 0: first.step()
    other.step()
""")
        self.assertEqual(self.steps(ranks[0]), [1, 2])
        self.assertEqual([line["other_steps"] for line in ranks[0] if "other_steps" in line][-1], 4)


class HelloTest(Lines):
    def test_the_world_is_that_of_the_launcher_or_of_the_process_group(self):
        def world(text, *words, **env):
            return self.run_script(text, *words, **env)[0][0].get("world")
        for env, expected in (({}, None), ({"WORLD_SIZE": "4"}, 4), ({"WORLD_SIZE": "4", "SWEEP_ANY_WORLD": "1"}, None), ({"WORLD_SIZE": "x"}, None)):
            with self.subTest(env):
                self.assertEqual(world("pass", **env), expected)
                (self.folder / "rank_00000.jsonl").unlink()

    def test_a_message_that_is_no_unicode_is_told_all_the_same(self):
        (error,) = [line for line in self.run_script("raise ValueError('bad \\udcff name')", code=1)[0] if line["kind"] == "error"]
        self.assertEqual(error["message"], "bad ? name")


class WatchTest(Lines):
    def test_an_optimizer_that_accelerate_wraps_is_followed(self):
        ranks = self.run_script("""
import accelerate, sweep_trial, torch
accelerator = accelerate.Accelerator(cpu=True)
model = torch.nn.Linear(8, 8)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=.1))
sweep_trial.watch(model, optimizer, tokens=16)
for _ in range(2):
    accelerator.backward(model(torch.ones(2, 8)).sum())
    optimizer.step()
    optimizer.zero_grad()
""")
        self.assertEqual([(line["step"], line["tokens"]) for line in ranks[0] if line["kind"] == "step"], [(1, 16), (2, 16)])

    def test_a_step_takes_numbers_of_other_libraries(self):
        ranks = self.run_script("""
import numpy, sweep_trial
for loss in (3, 2):
    sweep_trial.step(loss=numpy.float32(loss), tokens=numpy.int64(64))
""")
        self.assertEqual([(line["loss"], line["tokens"]) for line in ranks[0] if line["kind"] == "step"], [(3.0, 64), (2.0, 64)])


    def test_tokens_that_are_told_are_whole_numbers_or_left_out(self):
        ranks = self.run_script("""
import numpy, sweep_trial, torch
for told in (512, 512.0, numpy.int64(512), numpy.float32(512), numpy.float64(512), torch.tensor(512), "many", -1, float("nan"), torch.ones(2)):
    for tokens in (told, lambda: told):
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=.1)
        sweep_trial.watch(model, optimizer, tokens=tokens)
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
""")
        self.assertEqual([repr(line.get("tokens")) for line in ranks[0] if line["kind"] == "step"], ["512"] * 12 + ["None"] * 8)

    def test_what_json_cannot_say_ends_no_training(self):
        ranks = self.run_script("""
import sweep_trial, torch
sweep_trial.step(tokens=torch.ones(2), loss=torch.ones(2))
sweep_trial.report().line("memory", peak_allocated_bytes=torch.ones(2), ooms=1)
""")
        self.assertEqual([set(line) for line in ranks[0] if line["kind"] in ("step", "memory")], [{"v", "kind", "step"}, {"v", "kind", "ooms"}])


class Event:
    """An event of a stream; one that was recorded while the stream was captured is never reached."""
    captured: ClassVar[list] = []

    def __init__(self, **_):
        self.at = None

    def record(self):
        Event.captured += [self] if Cuda.capturing else []

    def query(self):
        return True

    def synchronize(self):
        assert self not in Event.captured, "it waits for ever"

    def elapsed_time(self, _):
        return 1.0


class Cuda:
    capturing, Event = False, Event

    @staticmethod
    def is_initialized():
        return True

    @staticmethod
    def is_current_stream_capturing():
        return Cuda.capturing

    @staticmethod
    def memory_stats():
        return {}


class GpuTest(Lines):
    """Where the GPU is asked, this process is told that there is one."""
    def watch(self, **env):
        said = []
        to = types.SimpleNamespace(line=lambda kind, **fields: said.append({"kind": kind, **fields}), add=lambda _: None, flush=lambda: None)
        for patched in (unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(cuda=Cuda)), unittest.mock.patch.dict(os.environ, env)):
            patched.start()
            self.addCleanup(patched.stop)
        return sweep_trial.Watch(to), said

    def test_memory_is_told_when_the_steps_of_a_trial_are_done(self):
        watch, said = self.watch(SWEEP_WARMUP_STEPS="1", SWEEP_STEPS="3")
        for _ in range(5):
            watch.step_ends()
        kinds = [line["kind"] for line in said]
        self.assertEqual(kinds, ["step", "step", "memory", "step", "step", "memory", "step"], "it may be killed after the last one")

    def test_a_gpu_that_lags_behind_holds_no_step_back_for_ever(self):
        watch, said = self.watch()
        with unittest.mock.patch.object(Event, "query", lambda _: False):
            for _ in range(40):
                watch.forward_begins()
                watch.step_ends()
        self.assertEqual(self.steps(said), list(range(1, 41 - sweep_trial.MOST_PENDING)))


class CaptureTest(Lines):
    def test_nothing_is_recorded_in_a_capture(self):
        said = []
        to = types.SimpleNamespace(line=lambda kind, **fields: said.append({"kind": kind, **fields}), add=lambda _: None, flush=lambda: None)
        patched = unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(cuda=Cuda))
        patched.start()
        self.addCleanup(patched.stop)
        watch = sweep_trial.Watch(to)
        for Cuda.capturing in (True, False, False):
            watch.forward_begins()
            watch.forward_ends()
            watch.optimizer_begins()
            watch.step_ends()
        watch.close()
        self.assertEqual(Event.captured, [])
        self.assertEqual(self.steps(said), [1, 2])
        self.assertEqual([line["forward_ms"] for line in said if line["kind"] == "step"], [1.0, 1.0])


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        sys.exit(77)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        os.environ.pop(name, None)
    os.environ.update(OMP_NUM_THREADS="1", PYTHONPATH=str(MODULE))
    FORKS = forks.Forks([], ["torch", "torch._dynamo"])
    try:
        unittest.main(verbosity=2)
    finally:
        FORKS.close()
