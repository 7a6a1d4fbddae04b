"""The step of gpu_check about failures: trials that must end badly, and how they are told: outcome, rank, part."""
import mmap
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import grids
from runs import axes

STEP = 5  # schema/progress.h: Phase
HANG_SECONDS = 15
START_SECONDS = 40  # before the first step has ended: for libraries and the model too
LIMITS = f"{{hang_seconds: {HANG_SECONDS}, start_seconds: {START_SECONDS}, retries_crash: 0}}"
LONG = 4096  # micro-steps: the trial is still in them when it is struck

# On phantoms also what no GPU does on request (docs/phantom.md): kind -> outcome, part, rank that is blamed.
BY_INSTRUCTION = [("malloc_oom:at=12:rank=1", "oom", None, 1), ("cublas_oom:at=60:rank=1", "oom", None, 1), ("module_oom:times=2:rank=1", "oom", None, 1), ("nccl_oom:rank=1", "oom", "communication", 1),
                  ("launch_failure:at=300:rank=1", "crash", None, 1), ("host_hang:at=4:rank=1", "hang", None, 1)]

HOLDER = """import sys, torch
free, _ = torch.cuda.mem_get_info()
kept = torch.empty(free - (1 << 30), dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("held", kept.numel(), flush=True)
sys.stdin.read()
"""


def judged(check, case, row, outcome, part=None, rank=None):
    """One row: what came, beside what must come. A rank or a part of None is not judged."""
    met = row["outcome"] == outcome and part in (None, row["oom_part"]) and rank in (None, row["cause_rank"])
    check.record.row(met, case=case, expected=outcome, outcome=row["outcome"], phase=row["phase"], part=row["oom_part"],
                     rank=row["cause_rank"], asked_bytes=row["oom_asked_bytes"], reason=row["reason"], axes=axes(row))


def memory_runs_out(check):
    """Runs out of memory by too large a batch, and by a cap below what the weights and moments need."""
    large = grids.grid_of("oom", grids.LLAMA_1B, check.base(4096, precision="bf16"), [dict(micro_batch_size=64, global_batch_size=64)])
    check.on_gpu("oom", large, lambda row: judged(check, "64 sequences", row, "oom"))
    capped = grids.grid_of("cap", grids.LARGE, check.base(1024, precision="bf16", memory_cap_bytes=3 << 30), [dict(micro_batch_size=4, global_batch_size=4)])
    check.on_gpu("cap", capped, lambda row: judged(check, "a cap of 3 GiB", row, "oom"))


def pid_of(spool, rank):
    """The process whose output is the log of this rank. By the file itself: its path reads otherwise from another mount namespace."""
    logs = list(spool.glob(f"*/attempts/*/rank_{rank:05d}.log"))
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if any(log.samefile(entry / "fd" / "1") for log in logs):
                    return int(entry.name)
            except OSError:
                continue  # gone meanwhile, or another user's
    return None


def steps_of(spool, rank):
    """Heartbeats of a rank that is in its timed steps; 0 before."""
    for page in spool.glob(f"*/attempts/*/rank_{rank:05d}.progress"):
        if page.stat().st_size >= 96:
            with open(page, "rb") as file, mmap.mmap(file.fileno(), 96, prot=mmap.PROT_READ) as memory:
                magic, phase, _, _, beats = struct.unpack_from("<QIIQQ", memory)
                return beats if magic and phase >= 3 and phase <= STEP else 0
    return 0


def struck(check, case, blow, outcome, rank=1):
    """Two ranks; this one is stopped or killed when it trains."""
    base = {**check.base(512), "gpus_per_node": 2, "backend": "gloo", "global_batch_size": 2 * LONG, "precision": "bf16"}
    text = grids.grid_of(case, grids.TINY, base, [dict(tp=1)], limits=LIMITS)
    process, db = check.sweeps.begin(case, text, slots=2, rehearse=check.machine.phantom, SWEEP_PHANTOM_GPUS="1")
    spool = pathlib.Path(f"{db}.spool")
    until = time.monotonic() + min(120, check.sweeps.left())
    while steps_of(spool, rank) == 0 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.2)
    pid = pid_of(spool, rank)
    if pid is None:
        check.sweeps.end(process)
        return check.record.row(False, case=case, expected=outcome, outcome="not struck", reason="rank 1 was never seen in a step")
    os.kill(pid, blow)
    return check.sweeps.wait(process, db, check.each(lambda row: judged(check, case, row, outcome, rank=rank)))


def beside_another_process(check):
    """Another program holds all of the GPU but 1 GiB."""
    if check.machine.phantom:
        return check.record.note("memory held by another process: not run, a rehearsal's phantom GPUs are its own")
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        held = holder.stdout.readline().strip()
        text = grids.grid_of("beside", grids.LLAMA_1B, check.base(2048, precision="bf16", global_batch_size=1), [dict()])
        check.on_gpu("beside", text, lambda row: judged(check, f"beside another process ({held})", row, "oom"))
    finally:
        holder.kill()
        holder.communicate()
    return None


def by_instruction(check):
    if not check.machine.phantom:
        return check.record.note("failures of cuBLAS, NCCL and launches: not run, no GPU fails on request")
    base = {**check.base(512), "gpus_per_node": 2, "global_batch_size": 8, "precision": "bf16"}
    text = grids.grid_of("instructed", grids.SMALL, base, [dict()], limits=LIMITS)
    for number, (instruction, outcome, part, rank) in enumerate(BY_INSTRUCTION):
        check.on_gpu(f"instructed-{number}", text, lambda row: judged(check, instruction, row, outcome, part, rank), rehearse=True,
                     SWEEP_PHANTOM_FAULTS=instruction)
    return None


def typed(check):
    """Each case is a sweep of its own: none waits for another."""
    check.attempt("memory runs out", memory_runs_out)
    check.attempt("stopped", struck, "stopped", signal.SIGSTOP, "hang")
    check.attempt("killed", struck, "killed", signal.SIGKILL, "crash")
    check.attempt("beside another process", beside_another_process)
    check.attempt("by instruction", by_instruction)
