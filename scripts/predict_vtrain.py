#!/usr/bin/env python3
"""predict_vtrain.py SWEEP vtrain.csv [--draws N]: how `sweep predict` does on vTrain's rows (KAIST, MICRO 2024): Megatron-DeepSpeed, GPT shapes,
A100, as the tables of docs/measurements/2026-11-30-vtrain.md.
vtrain.csv has their columns: GPUs, global batch, micro batch, hidden size, heads, layers, sequence, tp, dp, pp, iteration time in ms.
Read as: family gpt2, tied, fp16, ZeRO 0, A100 80 GB; a vocabulary of 50,257 that nobody rounded up, attention that writes its scores out, and tp
without sp, as the authors' own model has it (github.com/VIA-Research/vTrain). They state no memory. The rows are composed by the authors' program
of the times of 32 layers and heads that were traced on one GPU, and nothing is computed again in them."""
import argparse
import collections
import csv
import random
import statistics
import tempfile

from predict_accuracy import Tool, spearman

KEYS = ("gpus", "gbs", "mbs", "hidden_size", "heads", "layers", "seq_len", "tp", "dp", "pp", "step_ms")
FIXED = {"trainer": "megatron", "family": "gpt2", "vocab_size": 50257, "attention": "math", "sp": "false", "tie_embeddings": "true", "precision": "fp16", "recompute": "none", "zero": 0,
         "status": "ok"}
FEWEST_OF_A_CELL = 5
ON = ("--hardware", "a100-80gb")


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        cells: list[dict] = [dict(zip(KEYS, row)) for row in csv.reader(line for line in file if not line.startswith("#"))]
    for row in cells:
        row["gas"] = int(row["gbs"]) // (int(row["dp"]) * int(row["mbs"]))
        row["max_positions"] = row["seq_len"]
        row |= FIXED
        del row["gbs"]
    return cells


def off(row):
    return float(row["predicted_step_s"]) * 1e3 / float(row["step_ms"])


def mean_error(rows, factor=1.0):
    return statistics.mean(abs(off(r) / factor - 1) for r in rows)


def best_factor(rows):
    """the one factor that leaves the least mean error"""
    return min((off(r) for r in rows), key=lambda factor: mean_error(rows, factor)) if len(rows) < 200 else \
        min(sorted(off(r) for r in rows)[::max(1, len(rows) // 200)], key=lambda factor: mean_error(rows, factor))


def cells_of(rows):
    """Rows of one draw among which a choice is made: equal model, GPUs and global batch."""
    cells = collections.defaultdict(list)
    for r in rows:
        whole = int(r["gas"]) * int(r["dp"]) * int(r["mbs"])
        cells[(r.get("draw"),) + tuple(r[k] for k in ("gpus", "hidden_size", "layers")) + (whole,)].append(r)
    return [c for c in cells.values() if len(c) >= FEWEST_OF_A_CELL]


def line(name, rows):
    """mean error, the same after one factor, order and loss at equal global batch, rows that ran and are refused"""
    cells = cells_of(rows)
    orders = [spearman([float(r["predicted_step_s"]) for r in c], [float(r["step_ms"]) for r in c]) for c in cells]
    losses = [float(min(c, key=lambda r: float(r["predicted_step_s"]))["step_ms"]) / min(float(r["step_ms"]) for r in c) - 1 for c in cells]
    factor = best_factor(rows)
    order = f"{statistics.median(orders):.2f} ({min(orders):.2f})" if cells else "-"
    loss = f"{100 * statistics.mean(losses):.1f} % ({100 * max(losses):.0f} %)" if cells else "-"
    inside = statistics.mean(1 / float(r["uncertainty_time_factor"]) <= off(r) <= float(r["uncertainty_time_factor"]) for r in rows)
    print(f"| {name} | {len(rows)} | {100 * mean_error(rows):.1f} % | {100 * mean_error(rows, factor):.1f} % | {order} | {loss} | {sum(r['fits'] == 'false' for r in rows)} | "
          f"{100 * inside:.0f} % |", flush=True)


def drawn(draw, rows):
    """The rows as those of one draw: no choice is made between the predictions of two fits."""
    return [r | {"draw": draw} for r in rows]


def rule_of_thumb(cell):
    return min(cell, key=lambda r: (int(r["tp"]), int(r["pp"]), -int(r["mbs"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep")
    parser.add_argument("measured")
    parser.add_argument("--draws", type=int, default=5, help="random sets of rows to fit on")
    o = parser.parse_args()
    rows = read(o.measured)
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(o.sweep, folder)
        print("| prediction | rows | mean error | after one factor | Spearman, median (least) | loss by the predicted best, mean (worst) | ran, refused | in the band |")
        print("|---|---|---|---|---|---|---|---|")
        for profile in ("megatron", "sweep", "fsdp2", "deepspeed", "nanotron"):
            line(f"profile {profile}", tool.predict(rows, *ON, "--profile", profile))
        rng = random.Random(2026)
        for start in ("fsdp2",):
            for count in (5, 10, 30, 100):
                told = []
                for draw in range(o.draws):
                    seen = rng.sample(rows, count)
                    others = [r for r in rows if r not in seen]
                    told += drawn(draw, tool.predict(others, *ON, "--profile", start, fit_on=seen))
                line(f"{start} fitted on {count} rows, the others ({o.draws} draws)", told)
        left_out = []
        for draw in range(o.draws):
            for model in sorted({(r["hidden_size"], r["layers"]) for r in rows}):
                inside = [r for r in rows if (r["hidden_size"], r["layers"]) == model]
                others = rng.sample([r for r in rows if r not in inside], 30)
                left_out += drawn(draw, tool.predict(inside, *ON, "--profile", "fsdp2", fit_on=others))
        line(f"fsdp2 fitted on 30 rows of other models ({o.draws} draws)", left_out)
        losses = [float(rule_of_thumb(c)["step_ms"]) / min(float(r["step_ms"]) for r in c) - 1 for c in cells_of(rows)]
        print(f"| lowest tp, then pp, largest micro-batch | {len(rows)} | - | - | - | {100 * statistics.mean(losses):.1f} % ({100 * max(losses):.0f} %) | - | - |")


if __name__ == "__main__":
    main()
