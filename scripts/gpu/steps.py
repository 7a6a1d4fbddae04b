"""The steps of gpu_check, most valuable first. Each takes a Check (machine, sweeps, record) and adds rows to its record."""
import collections
import json
import os
import subprocess
import sys
import traceback

import faults
import grids
import kernels
from machine import ROOT, c_compiler
from runs import OutOfTime, axes, change, near

MFU_GOAL = 0.5
LOSS_TOLERANCE = {"fp32": 1e-4}  # difference from another device's loss; rounding to 8 or 11 bits is coarser
LOW_PRECISION = 1e-2
# Tolerance of the loss's fall over the timed steps. The loss itself says little about the backward: 30 steps take 0.3 % (bf16) to 2.5 % off it.
# Paths on the CPU that round differently agree within 0.4 % of the fall in bf16, 0.1 % in the other precisions.
FALL_TOLERANCE = {"fp32": 1e-2, "fp8": 1e-1}  # fp8 is judged by bf16 where the CPU does not run it
FALL_LOW_PRECISION = 3e-2
FALL_ADAPTERS = 1e-1  # they begin at zero and take little off
LAYOUT_TOLERANCE = 1e-3  # products run in other orders on each layout
RESERVED_TOLERANCE = 0.05
UNSPLIT_BYTES = 32 << 20  # bytes of the allocator's blocks beyond those asked for: much only if the model is small

YARDSTICKS = (("FSDP2, eager", "fsdp", False), ("FSDP2, compiled", "fsdp", True), ("autocast, compiled blocks", "none", True))

SELFTEST_SECONDS = 120

Step = collections.namedtuple("Step", "number name title run")


class Check:
    def __init__(self, machine, sweeps, record, tolerance):
        self.machine, self.sweeps, self.record, self.tolerance = machine, sweeps, record, tolerance

    def base(self, seq_len, **more):
        return dict(hardware=self.machine.hardware, nodes=1, gpus_per_node=1, seq_len=seq_len, **more)

    def attempt(self, case, function, *words, outcome="failed"):
        """function(self, *words). What fails in it is a row: the rest of the step still runs."""
        try:
            return function(self, *words)
        except OutOfTime:
            raise
        except Exception:  # whatever it was
            self.record.row(False, case=case, outcome=outcome, reason=traceback.format_exc()[-1500:])
            return None

    def each(self, judge):
        """`judge`, for which what fails at one trial is that trial's row."""
        return lambda row: self.attempt(axes(row), lambda _: judge(row), outcome=row["outcome"])

    def on_gpu(self, name, text, judge=None, **how):
        """On the GPU; on its phantom where there is none. judge: called for each row as its trial has ended."""
        return self.sweeps.run(name, text, judge and self.each(judge), **{"rehearse": self.machine.phantom, **how})

    def memory(self, row):
        """(within the tolerance, figures)"""
        told = self.sweeps.predicted_bytes(row)
        off = change(told, row["peak_allocated_bytes"])
        well = near(off, self.tolerance) or off is not None and abs(told - row["peak_allocated_bytes"]) <= UNSPLIT_BYTES
        return well, dict(peak_bytes=row["peak_allocated_bytes"], dry_run_bytes=told, dry_run_error=off)

    def losses_agree(self, row, other, bound):
        """None on phantoms, whose kernels compute nothing."""
        if self.machine.phantom:
            return None
        return near(change(row["loss_last"], other["loss_last"]), bound)


def trains_alike(row, other):
    """Whether a row's loss, and what its training steps took off it, are those of another device. A backward that gives zeros
    takes nothing off."""
    off, precision = change(row["loss_last"], other["loss_last"]), row["precision"]
    if off is None or row["loss_first"] is None or other["loss_first"] is None:
        return False
    fall, wanted = row["loss_first"] - row["loss_last"], other["loss_first"] - other["loss_last"]
    return (wanted > 0 and near(off, LOSS_TOLERANCE.get(precision, LOW_PRECISION))
            and abs(fall - wanted) <= (FALL_ADAPTERS if row.get("lora_rank") else FALL_TOLERANCE.get(precision, FALL_LOW_PRECISION)) * wanted)


def one_trial(check):
    """Does anything run at all, in the memory that was predicted?"""
    dimensions = grids.LARGE if check.machine.small() else grids.LLAMA_1B
    text = grids.grid_of("trial", dimensions, check.base(2048, global_batch_size=2, precision="bf16"), [dict()])

    def each(row):
        within, figures = check.memory(row) if row["outcome"] == "ok" else (False, {})
        check.record.row(row["outcome"] == "ok" and within, **outcome_of(row), **times_of(row), **figures)
    check.on_gpu("trial", text, each)


def outcome_of(row):
    return {"axes": axes(row), "outcome": row["outcome"], **({"reason": row["reason"]} if row["reason"] else {})}


def times_of(row):
    return dict(step_ms=row["step_ms"], tokens_per_s=row["tokens_per_s"], mfu=row["mfu"], startup_ms=row["startup_ms"])


def phantom_bytes(check):
    """The same trials on phantoms of this GPU and on the GPU: outcome, bytes, retries of the caching allocator."""
    base = check.base(2048, global_batch_size=4)
    text = grids.grid_of("bytes", grids.SMALL if check.machine.small() else grids.LARGE, base, grids.PATHS, "{warmup_steps: 2, steps: 2}")
    ladder = grids.grid_of("ladder", grids.LLAMA_1B, check.base(4096), grids.LADDER, "{warmup_steps: 2, steps: 2}")
    check.attempt("ladder", on_both, "ladder", ladder)
    check.attempt("bytes", on_both, "bytes", text)


def on_both(check, name, grid):
    device = json.dumps(check.machine.phantom_of_this())
    rehearsed = check.attempt(f"{name} on phantoms", lambda _: check.sweeps.run(f"{name}-phantom", grid, rehearse=True, SWEEP_PHANTOM=device))
    phantoms = {row["trial"]: row for row in rehearsed or []}

    def judge(row):
        other = phantoms.get(row["trial"])
        if other is None:
            return check.record.row(False, **{**outcome_of(row), "reason": "the phantom has no such trial"})
        allocated = change(other["peak_allocated_bytes"], row["peak_allocated_bytes"])
        reserved = change(other["peak_reserved_bytes"], row["peak_reserved_bytes"])
        same = row["outcome"] == other["outcome"] and bool(row["alloc_retries"]) == bool(other["alloc_retries"])
        within = row["outcome"] != "ok" or near(allocated, check.tolerance) and near(reserved, RESERVED_TOLERANCE)
        return check.record.row(same and within, **outcome_of(row), phantom_outcome=other["outcome"],
                                peak_bytes=row["peak_allocated_bytes"], phantom_allocated=allocated,
                                reserved_bytes=row["peak_reserved_bytes"], phantom_reserved=reserved, retries=row["alloc_retries"],
                                phantom_retries=other["alloc_retries"], step_ms=row["step_ms"], phantom_ms=other["step_ms"])
    check.on_gpu(name, grid, judge)


def fall_of(row):
    """How far the loss fell; None where none was computed, as on phantoms."""
    return None if row["loss_first"] is None or row["loss_last"] is None else row["loss_first"] - row["loss_last"]


def gradients(check):
    """Every gradient of a step on the GPU against the CPU's, by `sweep selftest`: a rank alone, and what fits on all GPUs."""
    if check.machine.phantom:
        return check.record.note("gradients are not compared: kernels of phantoms compute nothing")
    words = ["selftest", "--hardware", check.machine.hardware, "--ranks-per-node", str(len(check.machine.gpus)), "--json", "--quiet"]
    said = check.sweeps.answer(*words, seconds=SELFTEST_SECONDS)
    for row in json.loads(said)["strategies"]:
        if row["result"] != "not run":
            check.record.row(row["result"] == "passed", strategy=row["strategy"], loss_error=row.get("loss"),
                             gradient_error=row.get("gradient"), why=row["why"])
    return None


def key_of(row):
    """What makes two trials of `parity` the same."""
    return json.dumps(axes(row), sort_keys=True)


def nearest(row):
    """The key of the trial that the CPU runs too and that differs least; None: this one is such a trial."""
    replaced = {name: values[row[name]] for name, values in grids.NEAREST.items() if row[name] in values}
    return key_of({**row, **replaced}) if replaced else None


class Parity:
    """Judges the GPU's trials by the CPU's, which run beside; what the CPU does not run by the nearest trial of the GPU. A row is
    there when its trial of the GPU has ended, and is completed when the CPU's has."""
    def __init__(self, check, process, db):
        self.check, self.process, self.db = check, process, db
        self.cpu, self.gpu, self.waiting = {}, {}, []  # waiting: (trial, its row)

    def gpu_ended(self, row):
        self.gpu[key_of(row)] = row
        entry = self.check.record.row(None if row["outcome"] == "ok" else False, **outcome_of(row), beside="CPU", its_outcome="not ended")
        self.waiting.append((row, entry))
        self.cpu.update((key_of(other), other) for other in self.check.sweeps.rows(self.db, complete=False))
        self.look()

    def cpu_ended(self, other):
        self.cpu[key_of(other)] = other
        self.look()

    def look(self):
        for row, entry in list(self.waiting):
            other, beside = self.cpu.get(key_of(row)), "CPU"
            if row["outcome"] == "ok" and other and other["outcome"] == "unsupported" and nearest(row):
                other, beside = self.gpu.get(nearest(row)), "the nearest trial of the GPU"
            if other:
                self.judge(row, entry, other, beside)

    def judge(self, row, entry, other, beside):
        self.waiting.remove((row, entry))
        found = other and other["outcome"]
        if row["outcome"] != "ok" or found != "ok":
            return self.check.record.complete(entry, False, beside=beside, its_outcome=found)
        met = None if self.check.machine.phantom else trains_alike(row, other)
        return self.check.record.complete(entry, met, beside=beside, its_outcome="ok", loss=row["loss_last"], its_loss=other["loss_last"],
                                          loss_error=change(row["loss_last"], other["loss_last"]), fall=fall_of(row), its_fall=fall_of(other))

    def finish(self, name):
        """Waits for the CPU's trials. What is left has none."""
        self.check.attempt(f"{name} on the CPU", lambda check: check.sweeps.wait(self.process, self.db, check.each(self.cpu_ended)))
        for row, entry in list(self.waiting):
            self.judge(row, entry, None, "CPU")


def parity(check):
    """Every gradient of a step, then loss and its fall over training steps: GPU against CPU ranks, same weights and batches. The
    GPU waits for no CPU: a session that is cut has its rows."""
    base = check.base(128, global_batch_size=4)

    def grid(name, points, **more):
        return grids.grid_of(name, grids.TINY, {**base, **more}, points, "{warmup_steps: 2, steps: 30}")

    parts = [("parity", grids.PARITY, {}), ("packed", grids.PACKED, dict(lengths="uniform 16 128"))]
    slots = max(1, (os.cpu_count() or 1) // 4)
    judges = [Parity(check, *check.sweeps.begin(f"{name}-cpu", grid(f"{name}-cpu", points, **more, hardware="cpu"), slots=slots))
              for name, points, more in parts]
    check.attempt("gradients", gradients)
    for (name, points, more), judge in zip(parts, judges):
        check.attempt(name, lambda _: check.on_gpu(name, grid(name, points, **more), judge.gpu_ended))
    for (name, _, _), judge in zip(parts, judges):
        judge.finish(name)


def two_ranks(check):
    """Every parallel strategy: over Gloo where ranks share one GPU (times mean nothing then), over NCCL where there are more."""
    several = len(check.machine.gpus) // 2 * 2
    ranks, backend = several or 2, "auto" if several else "gloo"
    base = {**check.base(1024), "gpus_per_node": ranks, "backend": backend, "global_batch_size": 4 * ranks}
    # Gloo's sums are real, on phantoms too, and this may be a small machine.
    dimensions = grids.TINY if check.machine.phantom else grids.SMALL
    points = grids.ALONE + grids.STRATEGIES + grids.longer_pipelines(ranks)
    text = grids.grid_of("ranks", dimensions, base, points, "{warmup_steps: 2, steps: 4}")
    alone = {}

    def each(row):
        within, figures = check.memory(row) if row["outcome"] == "ok" else (False, {})
        if row["gpus_per_node"] == 1:
            alone[row["model"], row["precision"]] = row
        one = alone.get((row["model"], row["precision"]))
        if row["outcome"] == "ok" and one is None:
            check.record.note(f"{axes(row)}: its trial on one rank has not ended; its loss is not compared")
        agree = None if one is None or row["outcome"] != "ok" else check.losses_agree(row, one, LAYOUT_TOLERANCE)
        off = None if check.machine.phantom or one is None else change(row["loss_last"], one["loss_last"])
        check.record.row(within and agree is not False, ranks=row["gpus_per_node"], **outcome_of(row), **figures, loss_error=off)
    check.on_gpu("ranks", text, each, slots=ranks, SWEEP_PHANTOM_GPUS="1")  # one phantom GPU; they share it as they would a GPU


def pytorch(check, parallel, compiled):
    """Median step of PyTorch with the shape of LLAMA_1B, or why there is none: scripts/bench_pytorch.py."""
    d = grids.LLAMA_1B
    words = ["--parallel", parallel, "--device", "cuda", "--precision", "bf16_mixed", "--layers", d["layers"], "--hidden", d["hidden_size"],
             "--heads", d["heads"], "--kv-heads", d["kv_heads"], "--intermediate", d["intermediate_size"], "--vocab", d["vocab_size"],
             "--seq-len", 2048, "--micro-batch-size", 2, "--warmup", 5, "--steps", 20, *(["--compile"] if compiled else [])]
    under = []
    if check.machine.phantom:
        under = [ROOT / "scripts" / "phantom", "--build", check.machine.build, "--device", check.machine.hardware, "--"]
    command = [str(word) for word in [*under, sys.executable, ROOT / "scripts" / "bench_pytorch.py", *words]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=min(240, check.sweeps.left()), stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, "took longer than its share of time"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no word"])[-1]
    return json.loads(done.stdout.splitlines()[-1]), None


def against_pytorch(check):
    """This step, then PyTorch, then this step again: what the machine did meanwhile shows in the two. FSDP2 on one GPU flatters
    this step, because it gathers and casts each layer for nothing; plain compiled blocks under autocast do not."""
    base = check.base(2048, global_batch_size=2, precision="bf16_mixed", micro_batch_size=2)
    text = grids.grid_of("fsdp2", grids.LLAMA_1B, base, [dict()], "{warmup_steps: 5, steps: 20}")
    check.record.note("over_sweep of FSDP2 flatters sweep: on one GPU it gathers and casts each layer for nothing")
    ours = []

    def each(row):
        ours.append(row["step_ms"])
        check.record.row(row["outcome"] == "ok", who="sweep", **outcome_of(row), step_ms=row["step_ms"], peak_bytes=row["peak_allocated_bytes"])
    check.on_gpu("fsdp2-first", text, each)
    for name, parallel, compiled in YARDSTICKS:
        if compiled and not c_compiler():
            check.record.row(None, who=name, outcome="not run", reason="torch.compile needs a C compiler, and there is none")
            continue
        found, why = check.attempt(name, pytorch, parallel, compiled) or (None, "it failed, as the row before says")
        if found is None:
            check.record.row(False, who=name, outcome="failed", reason=why)
            continue
        # Under phantoms PyTorch's figure is its host's time, the step's a modelled one.
        ratio = found["median_ms"] / ours[0] if ours and ours[0] and not check.machine.phantom else None
        check.record.row(None, who=name, outcome="ok", step_ms=found["median_ms"], peak_bytes=found["peak_allocated_bytes"], over_sweep=ratio)
    check.on_gpu("fsdp2-again", text, each)


def mfu(check):
    """Llama-8B-shaped layers at 4,096 tokens in bf16, against half of the dense peak at the best micro-batch."""
    base = check.base(4096, global_batch_size=8, precision="bf16")
    text = grids.grid_of("mfu", grids.LLAMA_8B, base, [dict(micro_batch_size=m) for m in (1, 2, 4, 8)])
    best = []

    def each(row):
        best.append(row["mfu"] or 0)
        check.record.row(None if row["outcome"] in ("ok", "oom") else False, **outcome_of(row), **times_of(row),
                         forward_ms=row["forward_ms"], backward_ms=row["backward_ms"], optimizer_ms=row["optimizer_ms"],
                         power_w=row["power_mean_w"], sm_clock_mhz=row["sm_clock_mhz"], throttle=row["throttle"])
    check.on_gpu("mfu", text, each)
    reached = max(best, default=0)
    check.record.row(None if check.machine.phantom else reached >= MFU_GOAL, axes="best micro-batch", mfu=reached, goal=MFU_GOAL)


STEPS = [Step(number, name, title, run) for number, (name, title, run) in enumerate([
    ("trial", "One trial", one_trial),
    ("parity", "Parity of precisions, paths and families, GPU against CPU", parity),
    ("mfu", "MFU over micro-batches", mfu),
    ("kernels", "Fused kernels: time, bytes, share of bandwidth", kernels.table),
    ("phantom", "The phantom's bytes and retries against the GPU's", phantom_bytes),
    ("faults", "Hang, out of memory and lost ranks: are they typed right?", faults.typed),
    ("ranks", "Two ranks on one GPU over Gloo, or all GPUs over NCCL", two_ranks),
    ("fsdp2", "Step time against PyTorch: FSDP2 eager and compiled, plain compiled blocks; 1B Llama on one GPU", against_pytorch),
    ("sanitizer", "Fused kernels under compute-sanitizer", kernels.sanitized)], start=1)]
