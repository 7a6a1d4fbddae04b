#!/usr/bin/env python3
"""predict_accuracy.py SWEEP MEASURED.csv: how good `sweep predict` is against measured rows, as the tables of docs/predict.md.
MEASURED.csv has the columns of sweeps/data: model, nodes, dp, tp, pp, gas, mbs, zero, status, tok_s_gpu, mem_gb.
1. Accuracy of the shipped profile. 2. Each model predicted by a profile fitted on the others. 3. Each cell (model, nodes) predicted
by a profile fitted without it. scripts/search_accuracy.py replays searches on the same rows."""
import collections
import csv
import io
import pathlib
import statistics
import subprocess
import sys
import tempfile

GB = 1e9
NANOTRON = ("--trainer", "nanotron")


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def cell_of(row):
    return row["model"], int(row["nodes"])


class Tool:
    """`sweep` over rows, which it gets as files of this folder."""

    def __init__(self, sweep, folder):
        self.sweep, self.folder = sweep, pathlib.Path(folder)

    def write(self, name, rows):
        with open(self.folder / name, "w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, list(rows[0]))
            out.writeheader()
            out.writerows(rows)
        return self.folder / name

    def run(self, *words):
        done = subprocess.run(list(map(str, (self.sweep, *words))), capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else sys.exit(done.stderr)

    def predict(self, rows, *words, fit_on=None):
        """The rows with their predictions, by a profile fitted on the rows `fit_on`."""
        fit = ["--fit", self.write("fit.csv", fit_on)] if fit_on else []
        return read(self.run("predict", "--configs", self.write("rows.csv", rows), *words, *fit))


def ranks(values):
    """1 for the smallest; ties share the mean of their places."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) + 1) / 2 for value in values]


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    return statistics.correlation(a, b) if len(set(a)) > 1 and len(set(b)) > 1 else 1.0


def rate(row):
    return float(row["tok_s_gpu"]) if row["status"] == "ok" else 0.0


def inside(row):
    """whether the measured rate lies within the stated factor of the predicted one"""
    factor = float(row["uncertainty_time_factor"])
    return 1 / factor <= float(row["predicted_tokens_per_s_gpu"]) / rate(row) <= factor


def figures(rows):
    """of predicted rows: ran, failed, refused of each, memory error, order, time error"""
    ran, failed = [r for r in rows if r["status"] == "ok"], [r for r in rows if r["status"] != "ok"]
    memory = [abs(float(r["predicted_bytes"]) / GB / float(r["mem_gb"]) - 1) for r in ran]
    times = [abs(float(r["predicted_tokens_per_s_gpu"]) / rate(r) - 1) for r in ran]
    return {
        "ran": len(ran), "failed": len(failed),
        "refused_ran": sum(r["fits"] == "false" for r in ran), "refused_failed": sum(r["fits"] == "false" for r in failed),
        "unsure": sum(r["sure"] == "no" for r in rows),
        "inside_memory": statistics.mean(off <= float(r["uncertainty_bytes"]) for off, r in zip(memory, ran)),
        "inside_time": statistics.mean(inside(r) for r in ran),
        "memory": statistics.mean(memory), "memory_median": statistics.median(memory), "time_median": statistics.median(times),
        "order": spearman([float(r["predicted_tokens_per_s_gpu"]) for r in ran], [rate(r) for r in ran]),
    }


def table(predicted_by_cell):
    print("| model | nodes | ran | failed | ran, predicted not to | failed, predicted | memory error, mean (median) | rate error, median | Spearman | in the band: memory, rate |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    whole, orders = [], []
    for cell in sorted(predicted_by_cell):
        rows = predicted_by_cell[cell]
        f = figures(rows)
        whole += rows
        orders.append(f["order"])
        model, nodes = cell
        line(model, nodes, f)
    f = figures(whole)
    f["order"] = statistics.median(orders)
    line("all", "", f)
    print(f"\nNear the limit, where the prediction does not know: {f['unsure']} of {len(whole)} rows. Lowest Spearman of a cell {min(orders):.2f}.\n")


def line(model, nodes, f):
    caught = f"{100 * f['refused_failed'] / f['failed']:.1f} %" if f["failed"] else "-"
    print(f"| {model} | {nodes} | {f['ran']} | {f['failed']} | {f['refused_ran']} ({100 * f['refused_ran'] / f['ran']:.1f} %) | {caught} | "
          f"{100 * f['memory']:.1f} % ({100 * f['memory_median']:.1f} %) | {100 * f['time_median']:.0f} % | {f['order']:.2f} | "
          f"{100 * f['inside_memory']:.0f} %, {100 * f['inside_time']:.0f} % |")


def by_cell(rows):
    out = collections.defaultdict(list)
    for row in rows:
        out[cell_of(row)].append(row)
    return out


def main():
    sweep, measured = sys.argv[1:]
    with open(measured, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as name:
        tool = Tool(sweep, name)
        print("### The shipped profile\n")
        table(by_cell(tool.predict(rows, *NANOTRON)))
        for model in sorted({r["model"] for r in rows}):
            others = [r for r in rows if r["model"] != model]
            if not others:
                continue
            print(f"### {model}, by a profile fitted on the others\n")
            table(by_cell(tool.predict([r for r in rows if r["model"] == model], *NANOTRON, fit_on=others)))
        left_out = {}
        for cell, inside in by_cell(rows).items():
            left_out[cell] = tool.predict(inside, *NANOTRON, fit_on=[r for r in rows if cell_of(r) != cell])
        print("### Each cell left out of the fit\n")
        table(left_out)


if __name__ == "__main__":
    main()
