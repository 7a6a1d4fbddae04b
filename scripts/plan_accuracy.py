#!/usr/bin/env python3
"""plan_accuracy.py SWEEP GRID DB: how near the plan's order of a grid is to the measured one. DB holds the grid's results (`sweep run
GRID --db DB`). Prints for each model and for all: trials, Spearman of predicted against measured step time, the median of measured
over predicted, and how many trials in predicted order it takes until one is within 5 % of the best rate."""
import csv
import io
import json
import statistics
import subprocess
import sys

from predict_accuracy import spearman


def output(*words):
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout


def main(sweep, grid, db):
    predicted = {row["trial"]: row for row in csv.DictReader(io.StringIO(output(sweep, "plan", grid, "--csv"))) if row["predicted_ms"]}
    answers = json.loads(output(sweep, "query", "--db", db, "--json",
                                "SELECT trial, model, step_ms, tokens_per_s FROM results WHERE step_ms IS NOT NULL"))
    rows = [{**answer, "predicted_ms": float(predicted[answer["trial"]]["predicted_ms"])} for answer in answers if answer["trial"] in predicted]
    print("| model | trials | Spearman | measured / predicted, median | trials to within 5 % |\n|---|---|---|---|---|")
    for model in [*sorted({row["model"] for row in rows}), None]:
        own = [row for row in rows if model in (None, row["model"])]
        best = max(row["tokens_per_s"] for row in own)
        order = sorted(own, key=lambda row: row["predicted_ms"])
        tried = next(at for at, row in enumerate(order, 1) if row["tokens_per_s"] >= 0.95 * best)
        print(f"| {model or 'all'} | {len(own)} | {spearman([r['predicted_ms'] for r in own], [r['step_ms'] for r in own]):.2f} | "
              f"{statistics.median(r['step_ms'] / r['predicted_ms'] for r in own):.2f} | {tried} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
