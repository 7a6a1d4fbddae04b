"""The step of gpu_check about the fused kernels: time, bytes and share of the memory's bandwidth of each; then the same kernels
under compute-sanitizer, where it is installed."""
import json
import re
import shutil

import grids
from machine import catalogue_entry

TOOLS = ("memcheck", "racecheck")
ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
# For four experts a layer.
WIDE = dict(layers=2, hidden_size=4096, heads=32, kv_heads=8, intermediate_size=7168, vocab_size=32768)


def table(check):
    """A row for each kernel; written by the rank as it goes (SWEEP_KERNEL_TIMES)."""
    device = catalogue_entry(check.machine.hardware)
    for name, dimensions, point in (("dense", grids.LLAMA_8B, {}), ("experts", WIDE, dict(experts=True))):
        path = check.sweeps.folder / f"kernels-{name}.json"
        base = check.base(4096, global_batch_size=1, precision="bf16")
        text = grids.grid_of(f"kernels-{name}", dimensions, base, [point], "{warmup_steps: 5, steps: 20}")
        ended = check.on_gpu(f"kernels-{name}", text, SWEEP_KERNEL_TIMES=str(path))
        if not path.exists():
            check.record.row(False, model=name, outcome=ended[0]["outcome"] if ended else None, reason="no kernel was timed")
            continue
        for row in sorted(json.loads(path.read_text())["kernels"], key=lambda row: -row["ms"]):
            seconds = row["ms"] / 1e3
            share = row["bytes"] / seconds / device["memory_bandwidth"] if seconds > 0 else None
            check.record.row(None, model=name, **row, us_each=1e3 * row["ms"] / row["launches"], bandwidth_share=share)


def errors_of(text):
    """The sum over the processes' summaries; None: there is none."""
    found = [int(memory or race) for memory, race in ERRORS.findall(text)]
    return sum(found) if found else None


def sanitized(check):
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return check.record.note("compute-sanitizer is not installed: memcheck and racecheck are not run")
    text = grids.grid_of("sanitized", grids.TINY, check.base(128, global_batch_size=2, precision="fp32"), [dict(), dict(experts=True)],
                         "{warmup_steps: 2, steps: 2}", limits="{retries_crash: 0, hang_seconds: 500}")
    for name in TOOLS:
        log = check.sweeps.folder / f"{name}.txt"
        under = [tool, "--tool", name, "--target-processes", "all", "--log-file", str(log)]
        # Each tensor has an allocation of its own, so that what is read behind its end is seen.
        rows = check.on_gpu(f"sanitized-{name}", text, under=under, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        outcomes = [row["outcome"] for row in rows]
        errors = errors_of(log.read_text() if log.exists() else "")
        check.record.row(errors == 0 and outcomes == ["ok", "ok"], tool=name, errors=errors, outcomes=outcomes)
    return None


def kernels(check):
    table(check)
    sanitized(check)
