"""Benchmark sweeps of training configurations, from Python: the programs `sweep` and `sweep-agent` and what they answer.

    import sweep_bench as sb
    sb.plan({"name": "g", "model": "llama3-8b", ...})    # what would run; starts no trial
    sb.run("grid.yaml")                                  # runs it, with a progress bar; again: goes on
    sb.results(sweep="g")                                # every trial, as pandas, polars or Arrow
    sb.best(); sb.explain("2bed"); sb.heatmap()          # the answers

Each function calls `sweep` or reads its database: nothing is computed a second time here. Units are in the names of the
columns or in docs/fields.md: `_ms` is milliseconds, `_bytes` bytes, `tokens_per_s` tokens a second, and what was not
measured is null. `SWEEP_DB` names the database where `db` is not given, else it is sweep.db in the working folder.
"""
from __future__ import annotations

from ._answers import Page, best, explain, heatmap, report, sweeps
from ._frames import results
from ._programs import SweepError, program
from ._running import Plan, Run, plan, run

__all__ = ["Page", "Plan", "Run", "SweepError", "best", "explain", "heatmap", "plan", "program", "report", "results", "run", "sweeps"]
