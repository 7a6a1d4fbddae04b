"""The steps of gpu_check about the fused kernels: time, bytes and share of the memory's bandwidth of each; the same kernels under
compute-sanitizer, where it is installed."""
import json
import re
import shutil

import grids
from machine import catalogue_entry

TOOLS = ("memcheck", "racecheck")
TOOL_SECONDS = 60
ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")
# For four experts a layer.
WIDE = dict(layers=2, hidden_size=4096, heads=32, kv_heads=8, intermediate_size=7168, vocab_size=32768)


def table_of(check, name, dimensions, point):
    """A row for each kernel of a model; written by the rank as it goes (SWEEP_KERNEL_TIMES). The share of the bandwidth is that
    of its best launch: a mean has the small launches in it, and what else the GPU did."""
    bandwidth = catalogue_entry(check.machine.hardware)["memory_bandwidth"]
    path = check.sweeps.folder / f"kernels-{name}.json"
    base = check.base(4096, global_batch_size=1, precision="bf16")
    text = grids.grid_of(f"kernels-{name}", dimensions, base, [point], "{warmup_steps: 5, steps: 20}")
    ended = check.on_gpu(f"kernels-{name}", text, SWEEP_KERNEL_TIMES=str(path))
    if not path.exists():
        return check.record.row(False, model=name, outcome=ended[0]["outcome"] if ended else None, reason="no kernel was timed")
    for row in sorted(json.loads(path.read_text())["kernels"], key=lambda row: -row["ms"]):
        seconds = row["best_ms"] / 1e3
        share = row["best_bytes"] / seconds / bandwidth if seconds > 0 else None
        check.record.row(None, model=name, **row, us_each=1e3 * row["ms"] / row["launches"], bandwidth_share=share)
    return None


def table(check):
    check.attempt("dense", table_of, "dense", grids.LLAMA_8B, {})
    check.attempt("experts", table_of, "experts", WIDE, dict(experts=True))


def errors_of(text):
    """The sum over the processes' summaries; None: there is none."""
    found = [int(memory or race) for memory, race in ERRORS.findall(text)]
    return sum(found) if found else None


def under_tool(check, tool, name, text):
    log = check.sweeps.folder / f"{name}.txt"
    under = [tool, "--tool", name, "--target-processes", "all", "--log-file", str(log)]
    # The tool follows programs that are started, not forks of a process in a namespace. Each tensor has an allocation of its own,
    # so that what is read behind its end is seen.
    rows = check.on_gpu(f"sanitized-{name}", text, under=under, options=("--start", "exec"), seconds=TOOL_SECONDS,
                        SWEEP_NO_NAMESPACE="1", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    outcomes = [row["outcome"] for row in rows]
    errors = errors_of(log.read_text() if log.exists() else "")
    if errors != 0 and log.exists():
        check.record.keep(check.sweeps.folder, [log])
    check.record.row(errors == 0 and outcomes == ["ok", "ok"], tool=name, errors=errors, outcomes=outcomes)


def sanitized(check):
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return check.record.row(None, outcome="not run", reason="compute-sanitizer is not installed")
    text = grids.grid_of("sanitized", grids.TINY, check.base(128, global_batch_size=2, precision="fp32"), [dict(), dict(experts=True)],
                         "{warmup_steps: 2, steps: 2}", limits="{retries_crash: 0, hang_seconds: 500}")
    for name in TOOLS:
        check.attempt(name, under_tool, tool, name, text)
    return None
