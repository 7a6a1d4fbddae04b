#!/usr/bin/env python3
"""nanotron_table.py DB... [--sweep NAME]: what nanotron reserves on phantom H100s beside what the Ultra-Scale Playbook's authors charted on real ones.

DB holds the rehearsal of examples/nanotron/grid.yaml; of several, the last one that has a row counts. The chart is
sweeps/data/playbook_h100_1B_8B.csv. nanotron's benchmark writes the reserved peak of rank 0, in GiB; so rank 0 is compared, and the
fullest rank stands beside it. Prints Markdown."""
import argparse
import collections
import csv
import pathlib
import re
import sqlite3
import statistics
from typing import Any

CHART = pathlib.Path(__file__).resolve().parent.parent / "sweeps/data/playbook_h100_1B_8B.csv"
NUMBERS = ("dp", "tp", "pp", "zero", "mbs")
REHEARSED = """select r.model, r.dp, r.tp, r.pp, r.zero, r.micro_batch_size, r.grad_accum, r.outcome,
 (select k.peak_reserved_bytes from rank_record k where k.attempt = p.final_attempt and k.rank = 0), r.peak_reserved_bytes, r.peak_allocated_bytes, r.reason
 from results r join trial t on t.id = r.trial join plan_entry p on p.trial = t.key
 where r.sweep = ? and r.outcome in ('ok', 'oom', 'crash', 'hang')"""


def charted():
    """Rows of one node by model and layout; two differ in their micro-steps only."""
    rows = collections.defaultdict(list)
    with open(CHART, newline="") as file:
        for row in csv.DictReader(file):
            if row["nodes"] == "1":
                rows[f"playbook-{row['model'].lower()}", *(int(row[name]) for name in NUMBERS)].append(row)
    return rows


def matching(rows, grad_accum):
    """The charted row with these micro-steps; rehearsals make at most as many as charted."""
    return min(rows, key=lambda row: (int(row["gas"]) < grad_accum, int(row["gas"])))


KNOWN = {"Number of microbatches": "refused: fewer micro-steps than stages - 1", "unhandled cuda error": "oom of NCCL"}


def how_it_failed(outcome, reason, pp):
    """nanotron's message if it crashed, else the outcome, with the pipeline stage of the rank that failed first."""
    rank = re.search(r"rank (\d+)", reason or "")
    said = next((meaning for words, meaning in KNOWN.items() if words in (reason or "")), outcome)
    return said + (f", stage {int(rank.group(1)) // (8 // pp)}" if rank and pp > 1 and "oom" in said else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("db", type=pathlib.Path, nargs="+")
    parser.add_argument("--sweep", default="nanotron-playbook.rehearsal")
    given = parser.parse_args()
    chart = charted()
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for db in given.db:
        with sqlite3.connect(db) as connection:
            found |= {row[:7]: row for row in connection.execute(REHEARSED, (given.sweep,))}
    rehearsed = [found[key] for key in sorted(found)]
    print("| model | dp | tp | pp | ZeRO | sequences | charted, GiB | rank 0, GiB | difference | fullest rank, GiB | allocated, GiB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    errors, agreed, seen = [], 0, 0
    failed: collections.Counter[str] = collections.Counter()
    for model, dp, tp, pp, zero, mbs, gas, outcome, first, fullest, allocated, reason in rehearsed:
        rows = chart.get((model, dp, tp, pp, zero, mbs))
        if not rows:
            continue
        row = matching(rows, gas)
        seen += 1
        agreed += (row["status"] == "ok") == (outcome == "ok")
        head = f"| {model[9:].upper()} | {dp} | {tp} | {pp} | {zero} | {mbs} | {row['mem_gb'] or row['status']} |"
        if outcome != "ok":
            failed[how_it_failed(outcome, reason, pp)] += 1
            print(f"{head} {how_it_failed(outcome, reason, pp)} | | | |")
            continue
        first, fullest, allocated = (bytes_ / 2**30 for bytes_ in (first, fullest, allocated))
        error = first / float(row["mem_gb"]) - 1 if row["mem_gb"] else None
        errors += [error] if error is not None else []
        print(f"{head} {first:.1f} | {'' if error is None else f'{error:+.1%}'} | {fullest:.1f} | {allocated:.1f} |")
    if errors:
        sizes = [abs(error) for error in errors]
        print(f"\n{len(errors)} that ran on both: mean deviation {statistics.mean(sizes):.1%}, median {statistics.median(sizes):.1%}, "
              f"{sum(size <= 0.05 for size in sizes)} within 5 %, {min(errors):+.1%} to {max(errors):+.1%}. "
              f"Whether it runs: {agreed} of {seen} as charted.")
    if failed:
        print("Failed here: " + ", ".join(f"{count} {how}" for how, count in failed.most_common()) + ".")


if __name__ == "__main__":
    main()
