#!/usr/bin/env python3
"""search_accuracy.py SWEEP MEASURED.csv [PROFILE...]: how many trials `strategy: search` needs, replayed on measured rows, as the table of docs/search.md.

MEASURED.csv has the columns of sweeps/data. Rows that failed are trials too. Each cell (model, nodes) is predicted by a profile fitted without
it. Columns: trials until within 5 % of the best of the cell, then by the same measure other ways to choose; and where the search stops by itself. With PROFILEs (of other trainers, whose
predictions are wrong here): where it stops by each of them.
"""
import collections
import csv
import random
import statistics
import sys
import tempfile

from predict_accuracy import Tool, cell_of, rate, read

NEAR = 0.95
NAMES = ("search", "random", "grid order", "best predicted", "lowest tp, then pp", "tuner")


def number(row, *keys):
    return tuple(int(row[k]) for k in keys)


def replay(tool, rows, others, *options):
    """The rows in the order that they are tried."""
    profile = tool.folder / "profile.json"
    if others:
        tool.run("predict", "--trainer", "nanotron", "--fit", tool.write("others.csv", others), "--save", profile)
    tried = read(tool.run("replay", tool.write("cell.csv", rows), "--profile", profile, *options))
    return [rows[int(each["row"]) - 2] for each in tried]


def trials_until_near(order, best):
    """Number of trials until one is near the best; None: the order ends before."""
    return next((count for count, row in enumerate(order, 1) if rate(row) >= NEAR * best), None)


def random_trials(rows, best):
    shuffled, counts, draw = list(rows), [], random.Random(1)
    for _ in range(2000):
        draw.shuffle(shuffled)
        counts.append(trials_until_near(shuffled, best))
    return statistics.median(counts)


def tuner_order(rows):
    """A tuner like DeepSpeed's: least model parallelism first; for each layout and ZeRO stage micro-batches from 1 on, until one fails or is slower."""
    groups, order = collections.defaultdict(list), []
    for row in sorted(rows, key=lambda r: number(r, "mbs")):
        groups[number(row, "tp", "pp", "zero")].append(row)
    for key in sorted(groups, key=lambda k: (k[0] * k[1], k)):
        last = -1.0
        for row in groups[key]:
            order.append(row)
            if rate(row) <= last:
                break
            last = rate(row)
    return order


def counts_of(tool, rows, others):
    best = max(map(rate, rows))
    to_the_end = replay(tool, rows, others, "--max-trials", len(rows), "--least-gain", 0)
    orders = (to_the_end, None, sorted(rows, key=lambda r: number(r, "dp", "tp", "pp", "mbs", "zero")),
              replay(tool, rows, None, "--strategy", "grid"), sorted(rows, key=lambda r: number(r, "tp", "pp", "mbs", "zero")), tuner_order(rows))
    counts = [random_trials(rows, best) if order is None else trials_until_near(order, best) or len(rows) for order in orders]
    tried = replay(tool, rows, None)
    return counts, len(tried), max(map(rate, tried)) / best


def stops_by(sweep, cells, profile):
    """A row: where the search stops in all cells by the predictions of this profile, and with what."""
    with tempfile.TemporaryDirectory() as name:
        tool, stops, shares = Tool(sweep, name), [], []
        for rows in cells.values():
            out = tool.run("replay", tool.write("cell.csv", rows), "--profile", profile)
            tried = [rows[int(each["row"]) - 2] for each in read(out)]
            stops.append(len(tried))
            shares.append(max(map(rate, tried)) / max(map(rate, rows)))
    print(f"| {profile} | {statistics.median(stops):g} ({max(stops)}) | {100 * min(shares):.0f} % | {100 * statistics.mean(shares):.1f} % | "
          f"{sum(s < 0.8 for s in shares)} of {len(shares)} |", flush=True)


def main():
    sweep, measured, *profiles = sys.argv[1:]
    cells = collections.defaultdict(list)
    with open(measured, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        cells[cell_of(row)].append(row)
    if profiles:
        print("| profile | stops after, median (most) | with, of the best, least | mean | cells below 80 % |\n|---|---|---|---|---|")
        for profile in profiles:
            stops_by(sweep, cells, profile)
        return
    print("| model | nodes | configurations | " + " | ".join(NAMES) + " | search stops after | with, of the best |\n|---" + "|---" * (len(NAMES) + 4) + "|")
    every, stops = collections.defaultdict(list), collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        tool = Tool(sweep, name)
        for cell in sorted(cells):
            counts, stopped, share = counts_of(tool, cells[cell], [r for r in rows if cell_of(r) != cell])
            large = cell[1] >= 64
            for label, count in zip(NAMES, counts):
                every[label, large].append(count)
            stops[large].append((stopped, share))
            print(f"| {cell[0]} | {cell[1]} | {len(cells[cell])} | " + " | ".join(f"{c:g}" for c in counts) + f" | {stopped} | {100 * share:.0f} % |", flush=True)
    for label, large in (("median (worst), up to 32 nodes", False), ("median (worst), 64 nodes", True)):
        shown = [f"{statistics.median(every[n, large]):g} ({max(every[n, large]):g})" for n in NAMES]
        trials, shares = zip(*stops[large])
        print(f"| {label} | | | " + " | ".join(shown) + f" | {statistics.median(trials):g} ({max(trials)}) | {100 * statistics.median(shares):.0f} % ({100 * min(shares):.0f} %) |")


if __name__ == "__main__":
    main()
