"""Reports a training run to sweep: step times, memory, and how it ended.

One file without dependencies: install it (`pip install ./python`) or copy it beside your script. The lines it writes are
described in docs/trainers.md. Outside of a sweep (SWEEP_RESULTS_FILE is not set) every call does nothing.

    sweep_trial.watch(model, optimizer)          # one line in your script: step, forward, backward, optimizer, memory
    python -m sweep_trial train.py --lr 1e-4     # no line at all: step times and memory of any PyTorch script
    sweep_trial.step(tokens=8192, loss=2.3)      # no PyTorch: say after each optimizer step that it is done
"""
from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import json
import os
import re
import runpy
import sys
import threading
import time
import traceback
import typing

VERSION = 1
RESULTS_VARIABLE = "SWEEP_RESULTS_FILE"  # a path; {rank} in it becomes the rank, in five digits
STACKS_VARIABLE = "SWEEP_STACKS_PIPE"  # a pipe; {rank} in it becomes the rank; each byte asks where this process is
ANY_WORLD_VARIABLE = "SWEEP_ANY_WORLD"  # set: the program may have other ranks than the trial
FLUSH_SECONDS = 0.05  # lines wait at most so long for the next write, which keeps the cost of short steps low
LONGEST_MESSAGE = 2000
MOST_PENDING = 16  # steps that a script may be ahead of its GPU; beyond them the oldest is waited for, so that progress is seen
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # JSON has neither NaN nor infinity


def rank():
    """The rank of this process: of its process group, else as torchrun, accelerate, deepspeed and sweep set it; 0 where none did."""
    with contextlib.suppress(Exception):  # torch.distributed may be half imported
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_initialized():
            return distributed.get_rank()
    return int(os.environ.get("RANK") or 0)


def world():
    """How many ranks this process is one of: by its process group, else by its launcher; None where neither says it, or where
    `sweep wrap` follows the first rank of a launcher that says no number."""
    if os.environ.get(ANY_WORLD_VARIABLE):
        return None
    with contextlib.suppress(Exception):
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_initialized():
            return distributed.get_world_size()
    return _whole(os.environ.get("WORLD_SIZE") or None)


def _number(kind, value):
    """An int or a float (kind) of what a script told, which may be a number of another library or a tensor; None where it is no number."""
    with contextlib.suppress(Exception):
        return kind(value)
    return None


def _whole(value):
    """As _number, of something that is counted: None where it is negative too."""
    found = _number(int, value)
    return found if found is not None and 0 <= found < 2**63 else None


def _sayable(value):
    with contextlib.suppress(Exception):
        _encode(value)
        return True
    return False


class Report:
    """Appends lines to the results file. One per process; safe to call from several threads."""

    def __init__(self, path):
        self.path, self._lock, self._waiting, self._written = path, threading.Condition(), [], 0.0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._pid = os.getpid()
        self._watches, self._ended = [], False
        threading.Thread(target=self._flush_late_lines, name="sweep_trial", daemon=True).start()

    def line(self, kind, now=False, **fields):
        """One line; fields that are None or that JSON has no value for (a loss may become NaN) are left out: a report never ends a training.
        now: written at once, else within FLUSH_SECONDS."""
        if os.getpid() != self._pid:  # a forked data loader worker is not the trainer
            return
        said = {"v": VERSION, "kind": kind, **{key: value for key, value in fields.items() if value is not None}}
        try:
            text = _encode(said)
        except Exception:
            text = _encode({key: value for key, value in said.items() if _sayable(value)})
        with self._lock:
            self._waiting.append(text)
            if now or time.monotonic() - self._written >= FLUSH_SECONDS:
                self._write()
            elif len(self._waiting) == 1:
                self._lock.notify()

    def _flush_late_lines(self):
        """Writes what waits although nothing more is said: the last step before a hang must be in the file."""
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting)
            time.sleep(FLUSH_SECONDS)
            with self._lock:
                self._write()

    def flush(self):
        if os.getpid() == self._pid:
            with self._lock:
                self._write()

    def _write(self):
        if self._waiting:
            data = memoryview(("\n".join(self._waiting) + "\n").encode())
            self._waiting = []
            while data:
                data = data[os.write(self._file, data):]
            self._written = time.monotonic()

    def add(self, watch):
        self._watches.append(watch)

    def error(self, error):
        """Says how the run failed, by the type of the exception."""
        self._finish("error", describe(error))

    def end(self):
        """Says that the run came to its end."""
        self._finish("end", {})

    def _finish(self, kind, fields):
        if self._ended or os.getpid() != self._pid:
            return
        self._ended = True
        for each in self._watches:
            with contextlib.suppress(Exception):  # a GPU whose context is lost cannot read its events
                each.close()
        say_memory(self)
        self.line(kind, now=True, **fields)


def _out_of_memory(error):
    """The part of the step, by the outermost of PyTorch's functions, and the bytes asked for: PyTorch tells these in its message alone."""
    out = {}
    for frame in traceback.extract_tb(error.__traceback__):
        folder = frame.filename.replace(os.sep, "/")
        if "/torch/optim/" in folder:
            out["part"] = "optimizer"
        elif frame.name == "backward" and ("/torch/_tensor.py" in folder or "/torch/autograd/" in folder):
            out["part"] = "backward"
        elif "/torch/nn/modules/module.py" in folder and frame.name.endswith("call_impl"):
            out["part"] = "forward"
        if out:
            break
    asked = re.search(r"Tried to allocate ([0-9.]+) (bytes|KiB|MiB|GiB)", str(error))
    if asked:
        out["asked_bytes"] = round(float(asked[1]) * 1024 ** ("bytes", "KiB", "MiB", "GiB").index(asked[2]))
    return out


def describe(error):
    """The fields of an error line: outcome by the exception's type, never by its message."""
    out = {"outcome": "crash", "type": f"{type(error).__module__}.{type(error).__qualname__}",
           "message": str(error)[:LONGEST_MESSAGE].encode("utf-8", "replace").decode(), "unix_ns": time.time_ns()}
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError):
        return {**out, "outcome": "oom", "oom": "host"}
    if torch is None:
        return out
    if isinstance(error, torch.OutOfMemoryError if hasattr(torch, "OutOfMemoryError") else torch.cuda.OutOfMemoryError):
        return {**out, "outcome": "oom", "oom": "device", **_out_of_memory(error)}
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and isinstance(error, getattr(distributed, "DistError", ())):
        out["consequential"] = True  # a peer ended first
    elif isinstance(error, NotImplementedError):
        out["outcome"] = "unsupported"
    return out


_cuda_settled: dict = {}  # allocator counters when warm-up was over


def _cuda():
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def cuda_memory():
    """Peaks of the caching allocator in bytes, and its cudaMalloc retries since warm-up ended; {} without a GPU."""
    cuda = _cuda()
    if cuda is None:
        return {}
    with contextlib.suppress(Exception):  # a GPU whose context is lost answers nothing
        stats = cuda.memory_stats()
        retries = stats.get("num_alloc_retries", 0)
        return {"peak_allocated_bytes": stats.get("allocated_bytes.all.peak"),
                "peak_reserved_bytes": stats.get("reserved_bytes.all.peak"),
                "alloc_retries": retries - _cuda_settled.get("retries", 0), "ooms": stats.get("num_ooms", 0)}
    return {}


def say_memory(to):
    """Says the allocator's figures so far, and lets phantom GPUs write theirs: the program may be killed after its steps."""
    memory = cuda_memory()
    if memory:
        to.line("memory", now=True, **memory)
    if os.environ.get("SWEEP_PHANTOM_COUNTERS"):
        with contextlib.suppress(Exception):  # phantoms are not loaded in every process
            import ctypes
            ctypes.CDLL(None).sweep_phantom_write_counters()


def _settle():
    cuda = _cuda()
    if cuda is not None:
        with contextlib.suppress(Exception):
            _cuda_settled["retries"] = cuda.memory_stats().get("num_alloc_retries", 0)


def _stacks():
    """The stack of each thread, the main one first, the innermost call first, as `py-spy dump` shows it."""
    names = {each.ident: each.name for each in threading.enumerate()}
    main, out = threading.main_thread().ident, []
    for thread, frame in sorted(sys._current_frames().items(), key=lambda item: item[0] != main):
        if thread == threading.get_ident() or names.get(thread) == "sweep_trial":
            continue
        out.append(f'Thread {thread}: "{names.get(thread, "?")}"')
        out += [f"    {each.f_code.co_name} ({each.f_code.co_filename}:{line})" for each, line in traceback.walk_stack(frame)]
    return "\n".join(out) + "\n"


def _flight_trace():
    """PyTorch's flight recorder as JSON; an empty object where it has none."""
    distributed = sys.modules.get("torch._C._distributed_c10d") or getattr(getattr(sys.modules.get("torch"), "_C", None), "_distributed_c10d", None)
    for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
        with contextlib.suppress(Exception):
            text = getattr(distributed, name)()
            if json.loads(text).get("entries"):
                return text.decode() if isinstance(text, bytes) else text
    return "{}"


def _answer_requests(pipe, results):
    """Writes stacks and flight recorder beside the results, the recorder last, whenever a byte comes through the pipe."""
    def write(suffix, text):
        path = os.path.splitext(results)[0] + suffix
        with open(path + ".part", "w") as file:
            file.write(text)
        os.replace(path + ".part", path)

    while True:
        with open(pipe, "rb", buffering=0) as asked:  # waits until the rank's agent asks
            while asked.read(1):
                with contextlib.suppress(Exception):
                    write(".stacks", _stacks())
                    write(".flight", _flight_trace())


def _answer_where(results):
    pipe = os.environ.get(STACKS_VARIABLE, "").replace("{rank}", str(rank()))
    if pipe and os.path.exists(pipe):
        threading.Thread(target=_answer_requests, args=(pipe, results), name="sweep_trial", daemon=True).start()


_report = None
_opened = False


def report():
    """The report of this process; None outside of a sweep."""
    global _report, _opened
    if not _opened:
        _opened = True
        path = os.environ.get(RESULTS_VARIABLE)
        if path and not ("{rank}" not in path and rank() != int(os.environ.get("RANK") or 0)):  # a child's rank has no file of its own
            path = path.replace("{rank}", f"{rank():05d}")
            _report = Report(path)
            _answer_where(path)
            _report.line("hello", now=True, rank=rank(), pid=os.getpid(), world=world())
            _hook_exit(_report)
    return _report


def _hook_exit(each):
    before = sys.excepthook

    def hook(kind, error, trace):
        each.error(error)
        before(kind, error, trace)

    sys.excepthook = hook
    atexit.register(each.end)


class Marks:
    """Time stamps: events of the current CUDA stream, or the clock where there is no GPU."""

    def __init__(self):
        self.cuda = _cuda()
        self.torch = sys.modules.get("torch")

    def now(self):
        """None while a CUDA graph is captured: an event of a capture is never reached, and what is captured does not run."""
        if self.cuda is None:
            return time.perf_counter_ns()
        if self.cuda.is_current_stream_capturing():
            return None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def reached(self, mark):
        return self.cuda is None or mark.query()

    def between(self, start, end):
        """Milliseconds. On a GPU it waits until the end is reached."""
        if self.cuda is None:
            return (end - start) / 1e6
        end.synchronize()
        return start.elapsed_time(end)


class Watch:
    """Times the steps of one optimizer. A step ends when optimizer.step() is done; forward is the time inside the model,
    backward the time from the end of a forward pass to the next one or to the optimizer. On a GPU a step is reported once
    the GPU has reached its end: nothing waits for it meanwhile."""

    def __init__(self, to, tokens=None):
        self.to, self.tokens = to, tokens
        self.warmup = int(os.environ.get("SWEEP_WARMUP_STEPS") or 0)
        self.last = self.warmup + int(os.environ.get("SWEEP_STEPS") or 0)  # of those that are measured
        self.other_steps = 0  # of optimizers that are not followed
        self.steps, self.loss_value, self.marks, self.begun = 0, None, None, None
        self.pending = collections.deque()  # steps whose end the GPU may not have reached yet
        to.add(self)
        self._new_step()

    def _new_step(self):
        self.forwards, self.seen_tokens, self.optimizer_begun = [], 0, None

    def _mark(self):
        if self.marks is None or (self.marks.cuda is None and _cuda() is not None):
            self._say_pending(wait=True)
            self.marks, self.begun = Marks(), None
        return self.marks.now()

    def forward_begins(self, args=(), kwargs=None):
        if self.steps == 0 and not self.forwards:
            self.to.line("phase", now=True, phase="first_step")
        mark = self._mark()
        if mark is None:
            return
        if self.begun is None and self.steps == 0:
            self.begun = mark
        self.forwards.append([mark, None])
        if self.tokens is None:
            self.seen_tokens += _tokens_in(args, kwargs or {})

    def forward_ends(self):
        mark = self._mark()
        if mark is not None and self.forwards:
            self.forwards[-1][1] = mark

    def optimizer_begins(self):
        self.optimizer_begun = self._mark()

    def step_ends(self):
        mark = self._mark()
        if mark is None:
            return
        self.pending.append(Step(self.steps + 1, self.marks, self.begun, list(self.forwards), self.optimizer_begun, mark,
                                 _whole(self.tokens() if callable(self.tokens) else self.tokens) or self.seen_tokens or None,
                                 self.loss_value))
        self._say_pending()
        self.steps, self.begun, self.loss_value = self.steps + 1, mark, None
        if self.steps == self.warmup:
            _settle()
        self._new_step()

    def loss(self, value):
        """The loss of the step under way (a number; a tensor costs a wait for the GPU)."""
        self.loss_value = _number(float, value)

    def close(self):
        self._say_pending(wait=True)
        self._say_others()
        self.to.flush()

    def _say_pending(self, wait=False):
        while self.pending and (wait or len(self.pending) > MOST_PENDING or self.pending[0].reached()):
            step = self.pending.popleft()
            self.to.line("step", **step.fields())
            if step.number in (self.warmup + 1, self.last):  # a trial may end early after the first, and is ended after the last
                self._say_others()
                say_memory(self.to)

    def _say_others(self):
        if self.other_steps:
            self.to.line("hello", other_steps=self.other_steps)


class Step(typing.NamedTuple):
    """One step's marks. begun is None where the step's beginning is unknown: the first one of an unknown script."""
    number: int
    marks: Marks
    begun: object
    forwards: list
    optimizer_begun: object
    end: object
    tokens: int | None
    loss: float | None

    def reached(self):
        return self.marks.reached(self.end)

    def fields(self):
        between = self.marks.between
        out = {"step": self.number, "tokens": self.tokens, "loss": self.loss}
        if self.begun is not None:
            out["ms"] = between(self.begun, self.end)
        if self.optimizer_begun is not None:
            out["optimizer_ms"] = between(self.optimizer_begun, self.end)
        done = [pair for pair in self.forwards if pair[1] is not None]
        if done and self.optimizer_begun is not None:
            after = [start for start, _ in done[1:]] + [self.optimizer_begun]
            out["forward_ms"] = sum(between(start, stop) for start, stop in done)
            out["backward_ms"] = sum(between(stop, following) for (_, stop), following in zip(done, after))
        return out


def _tokens_in(args, kwargs):
    """Tokens of a batch: elements of `input_ids`, else of the first whole-number matrix; 0 where there is none."""
    ids = kwargs.get("input_ids")
    for each in (ids, *args):
        if hasattr(each, "numel") and hasattr(each, "is_floating_point"):
            if each.dim() >= 2 and not each.is_floating_point():
                return each.numel()
            return 0
    return 0


def _before_step(args, kwargs, begins):
    """Calls `begins` where the optimizer's own part begins: now, or, where it is given a closure, when that has computed forward and
    backward. A hook's answer: changed arguments, or None."""
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if closure is None:
        begins()
        return None

    def computed():
        out = closure()
        begins()
        return out
    return ((args[0], computed, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": computed})


_followed: list = []  # (watch of the moment, whether a step of this optimizer is its step)


def _note_skips(owner, name):
    """Mixed precision leaves the optimizer alone where gradients are not finite, so that its hooks say nothing. The step was made all
    the same: owner.name(optimizer) or, of a DeepSpeed engine, its own optimizer's, is counted."""
    original = getattr(owner, name)
    if hasattr(original, "of_sweep_trial"):
        return

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        before = [(watch(), watch().steps, is_its) for watch, is_its in _followed]
        out = original(self, *args, **kwargs)
        optimizer = args[0] if owner.__name__ == "GradScaler" and args else getattr(self, "basic_optimizer", None)
        for each, steps, is_its in before:
            if each.steps == steps and is_its(optimizer):
                each.step_ends()
        return out
    step.of_sweep_trial = True
    setattr(owner, name, step)


def _follow(watch, is_its):
    _followed.append((watch, is_its))
    _follow_skips()


def _follow_skips():
    amp = getattr(sys.modules.get("torch"), "amp", None)
    if hasattr(amp, "GradScaler"):
        _note_skips(amp.GradScaler, "step")
    engine = getattr(sys.modules.get("deepspeed.runtime.engine"), "DeepSpeedEngine", None)
    if hasattr(engine, "_take_model_step"):
        _note_skips(engine, "_take_model_step")


_manual = None
_any = None  # the watch of an unknown script; it stands down where the script reports itself


def watch(model=None, optimizer=None, tokens=None):
    """Reports every step of `optimizer`, and the time spent in `model`. tokens: of this rank in a step, a number (of
    any library) or a function that gives one; without it they are counted from the model's input ids. The Watch, or None outside of a sweep."""
    to = report()
    if to is None:
        return None
    _stand_down()
    each = Watch(to, tokens)
    if model is not None:
        model.register_forward_pre_hook(
            lambda module, args, kwargs: each.forward_begins(args, kwargs) if module.training else None, with_kwargs=True)
        model.register_forward_hook(lambda module, args, output: each.forward_ends() if module.training else None)
    # Wrappers such as Accelerate's hold the optimizer that has hooks.
    while optimizer is not None and not hasattr(optimizer, "_optimizer_step_pre_hooks") and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    if optimizer is not None:
        optimizer.register_step_pre_hook(lambda _, args, kwargs: _before_step(args, kwargs, each.optimizer_begins))
        optimizer.register_step_post_hook(lambda *_: each.step_ends())
        _follow(lambda: each, lambda stepped: stepped is optimizer)
    return each


def step(tokens=None, loss=None):
    """Says that an optimizer step is done. For trainers without a PyTorch optimizer."""
    global _manual
    to = report()
    if to is None:
        return
    if _manual is None:
        _stand_down()
        _manual = Watch(to)
    _manual.tokens = tokens
    _manual.loss(loss)
    _manual.step_ends()


def phase(name):
    """Says where the run is: init, build, first_step, report. Deadlines differ by phase."""
    to = report()
    if to is not None:
        to.line("phase", now=True, phase=name)


class LateReport:
    """The report of a process that may train nothing, as most children do: it is opened by the first step."""

    def __init__(self):
        self.watches = []

    def add(self, watch):
        self.watches.append(watch)

    def line(self, kind, now=False, **fields):
        to = report() if _opened or kind == "step" else None
        if to is None:
            return
        for each in self.watches:
            to.add(each)
        self.watches = []
        to.line(kind, now, **fields)

    def flush(self):
        if _report is not None:
            _report.flush()


class AnyWatch:
    """Reports the steps of the first optimizer that steps in this process, and the time in the first model that trains, whatever
    script makes them. The model is looked for by a hook on all modules, which goes once it is found."""

    def __init__(self):
        from torch.nn.modules.module import register_module_forward_pre_hook
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        self.start_over()
        _follow(lambda: self.watch, self._is_its)
        self.hooks = [register_optimizer_step_pre_hook(self._before_step), register_optimizer_step_post_hook(self._after_step)]
        self.search = register_module_forward_pre_hook(self._first_model)

    def start_over(self):
        self.watch, self.optimizer = Watch(LateReport()), None

    def _is_its(self, optimizer):
        if self.optimizer is None:
            self.optimizer = optimizer
        return bool(self.hooks) and self.optimizer is optimizer

    def _before_step(self, optimizer, args, kwargs):
        return _before_step(args, kwargs, self.watch.optimizer_begins) if self._is_its(optimizer) else None

    def _after_step(self, optimizer, *_):
        if self.optimizer is optimizer:
            self.watch.step_ends()
        elif self.hooks:
            self.watch.other_steps += 1

    def _first_model(self, module, args):
        import torch
        if not (module.training and torch.is_grad_enabled() and any(each.requires_grad for each in module.parameters())):
            return
        self.search.remove()
        _follow_skips()  # DeepSpeed is imported by now
        self.hooks += [module.register_forward_pre_hook(self._forward_begins, with_kwargs=True),
                       module.register_forward_hook(lambda module, *_: self.watch.forward_ends() if module.training else None)]
        self.watch.forward_begins(args)

    def _forward_begins(self, module, args, kwargs):
        if module.training:
            self.watch.forward_begins(args, kwargs)

    def stand_down(self):
        self.search.remove()
        for hook in self.hooks:
            hook.remove()
        self.hooks = []


def _stand_down():
    """The script reports its steps itself: two reports of the same steps would be nonsense."""
    global _any
    if _any is not None:
        _any.stand_down()
        _any = None


def watch_any_optimizer():
    """Reports the steps of the first optimizer that steps in this process, whatever script makes it."""
    global _any
    if os.environ.get(RESULTS_VARIABLE) and _any is None:
        _any = AnyWatch()
        os.register_at_fork(after_in_child=_start_over)


def _start_over():
    """In a forked child: it is another rank, or no trainer at all."""
    global _report, _opened
    _report, _opened = None, False
    if _any is not None:
        _any.start_over()


CHILDREN = '''"""Python runs this in each child of `python -m sweep_trial`: once it imports PyTorch's optimizers, their steps are reported."""
import os
import sys


class _Finder(object):
    def find_spec(self, name, path=None, target=None):
        if name != "torch.optim.optimizer":
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            try:
                import sweep_trial
                sweep_trial.watch_child()
            except Exception:
                pass
        spec.loader.exec_module = exec_module
        return spec


def _run_hidden():
    """The sitecustomize that this one hides."""
    here, this = os.path.dirname(os.path.abspath(__file__)), sys.modules.pop("sitecustomize", None)
    before = list(sys.path)
    sys.path[:] = [each for each in before if os.path.abspath(each) != here]
    try:
        import sitecustomize
    except ImportError:
        pass
    sys.path[:] = before + [each for each in sys.path if each not in before]
    sys.modules.setdefault("sitecustomize", this)


if os.environ.get("SWEEP_RESULTS_FILE"):
    sys.meta_path.insert(0, _Finder())
_run_hidden()
'''


def _watch_children(results):
    """Children by multiprocessing or by a launcher in the script (Lightning) may be ranks too: they find a sitecustomize."""
    beside = os.path.abspath(results)
    if os.pathsep in beside:  # PYTHONPATH cannot name such a path, and this module is not in one
        beside = os.path.abspath(__file__)
    folder = os.path.join(os.path.dirname(beside), "children")
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        part = os.path.join(folder, f"sitecustomize.{os.getpid()}")
        with open(part, "w") as file:
            file.write(CHILDREN)
        os.replace(part, os.path.join(folder, "sitecustomize.py"))
        rest = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and each != folder]
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *rest])
    _say_how_processes_end()


def _say_how_processes_end():
    """multiprocessing prints a child's exception itself, and a forked child runs no exit handlers."""
    from multiprocessing.process import BaseProcess
    run = BaseProcess.run
    if hasattr(run, "of_sweep_trial"):
        return

    @functools.wraps(run)
    def said(self):
        try:
            run(self)
        except BaseException as error:
            left = isinstance(error, SystemExit)
            if _report is not None and not (left and error.code in (None, 0)):
                _report.error(error.__context__ if left and error.__context__ is not None else error)
            raise
        if _report is not None:
            _report.end()
    said.of_sweep_trial = True
    BaseProcess.run = said


def watch_child():
    """sitecustomize calls this in a child of `python -m sweep_trial` that imports PyTorch."""
    _say_how_processes_end()
    watch_any_optimizer()


def huggingface_callback():
    """A callback for transformers.Trainer(callbacks=[...])."""
    from transformers import TrainerCallback

    class SweepCallback(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
            self.watch = watch(model, None)

        def on_pre_optimizer_step(self, args, state, control, **_):
            if self.watch:
                self.watch.optimizer_begins()

        def on_step_end(self, args, state, control, **_):
            if self.watch:
                self.watch.step_ends()

        def on_train_end(self, args, state, control, **_):
            if self.watch:
                self.watch.close()

    return SweepCallback()


def lightning_callback():
    """A callback for lightning.Trainer(callbacks=[...])."""
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

    class SweepCallback(Callback):
        def on_train_start(self, trainer, module):
            self.watch, self.steps = watch(trainer.strategy.model or module, None), trainer.global_step

        def on_before_optimizer_step(self, trainer, module, optimizer):
            if self.watch:
                self.watch.optimizer_begins()

        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            if self.watch and trainer.global_step != self.steps:  # not a micro-batch in between
                self.steps = trainer.global_step
                self.watch.step_ends()

        def on_train_end(self, trainer, module):
            if self.watch:
                self.watch.close()

    return SweepCallback()


def main(words):
    """python -m sweep_trial [-m MODULE | SCRIPT] ARGUMENTS"""
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if words else 2
    to = report()
    if to is not None:
        _watch_children(os.environ[RESULTS_VARIABLE])
        with contextlib.suppress(ImportError):
            watch_any_optimizer()
    sys.path[0] = os.getcwd() if words[0] == "-m" else os.path.dirname(os.path.abspath(words[0]))
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as leaving:
        if to is not None and leaving.code not in (None, 0):
            to.error(leaving)
        raise
    return 0


if __name__ == "__main__":
    sys.modules["sweep_trial"] = sys.modules["__main__"]  # a script that imports this module meets this report
    sys.exit(main(sys.argv[1:]))
