#!/usr/bin/env python3
"""rehearse_playbook.py BIN_DIR DB [--per-cell N] [--max-cost N] [--max-nodes N] [--catalogue]: what are modelled step times worth?

Rehearses configurations that the Ultra-Scale Playbook's authors measured (sweeps/data) on phantom GPUs, by roles, and compares
the order by modelled tokens/s in each (model, nodes) cell with the measured order, by Spearman's coefficient. Beside it stand
two orders that need no rehearsal: the plan's prediction, and "lowest tp, then lowest pp". Run again, it goes on where it was.
Phantoms are given what is this cluster's own: sweeps/data/playbook_cluster.json (the links over many nodes), and where the profile nanotron
says so (effects, fitted on these rows) its slow messages between nodes. --catalogue leaves both out.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import tempfile

from predict_accuracy import NANOTRON, Tool, spearman

REPO = pathlib.Path(__file__).resolve().parent.parent
BASE = {"hardware": "h100-sxm-80gb", "gpus_per_node": 8, "seq_len": 4096, "precision": "bf16_master", "grad_dtype": "fp32"}
CLUSTER = REPO / "sweeps/data/playbook_cluster.json"
PROFILE = REPO / "orchestrator/predict/profiles/nanotron.json"
NUMBERS = ("nodes", "dp", "tp", "pp", "zero", "mbs", "gas", "gbs")


def measured():
    """Rows that ran, with numbers for numbers; the 20 that do not multiply out are left out."""
    with open(REPO / "sweeps/data/playbook_h100_1B_8B.csv", newline="") as file:
        for text in csv.DictReader(file):
            row: dict = {**text, **{key: int(text[key]) for key in NUMBERS}}
            if row["status"] == "ok" and row["dp"] * row["mbs"] * row["gas"] == row["gbs"]:
                yield row


def chosen(per_cell, max_cost, max_nodes):
    """At random, by a fixed seed, from each cell's rows whose stages and micro-steps this machine can afford."""
    cells = collections.defaultdict(list)
    for row in measured():
        if row["pp"] <= 16 and row["pp"] * row["gas"] <= max_cost and row["nodes"] <= max_nodes:
            cells[row["model"], row["nodes"]].append(row)
    for cell in sorted(cells):
        rows = cells[cell]
        yield from random.Random(1).sample(rows, min(per_cell, len(rows)))


def point(row):
    return {"model": f"playbook-{row['model'].lower()}", **{key: row[key] for key in ("nodes", "dp", "tp", "pp", "zero")},
            "micro_batch_size": row["mbs"], "grad_accum": row["gas"], "sp": row["tp"] > 1}


def slow_messages(sweep, rows):
    """(row, nanoseconds of each slow message between nodes): the seconds that the profile predicts, by the messages that it counts"""
    with tempfile.TemporaryDirectory() as folder:
        told = Tool(sweep, folder).predict(rows, *NANOTRON)
    each = json.loads(PROFILE.read_text())["time"]["slow_message_s"]
    for row, of in zip(rows, told):
        messages = (4 if row["pp"] > 2 else 2) * (row["gas"] + (row["pp"] - 1) / 2)
        share = round(float(of["slow_messages_s"]) / messages / each, 1) if row["pp"] > 1 else 0
        yield row, int(1e9 * share * each)


def rehearse(given, rows, far_message_ns):
    grid = {"name": f"playbook-{far_message_ns}", "model": "playbook-1b", "base": BASE, "measure": {"warmup_steps": 1, "steps": 1},
            "include": [point(row) for row in rows]}
    file = given.db.with_suffix(".yaml")
    file.write_text(json.dumps(grid, indent=1))
    profile = {} if given.catalogue else {"SWEEP_PHANTOM_PROFILE": json.dumps({**json.loads(CLUSTER.read_text()), "far_message_ns": far_message_ns})}
    subprocess.run([given.bin / "sweep", "run", file, "--rehearse", "--rehearse-ranks", "1", "--db", given.db], check=False, env={**os.environ, **profile})


def rehearsed(db):
    query = ("select model, nodes, dp, tp, pp, zero, micro_batch_size, grad_accum, outcome, tokens_per_s_gpu, predicted_ms,"
             " peak_allocated_bytes, peak_reserved_bytes from results")
    with sqlite3.connect(db) as connection:
        return {row[:8]: row[8:] for row in connection.execute(query)}


def compare(rows, results):
    """Prints a line per cell: how many ran, and the three coefficients."""
    cells: dict[tuple, list] = collections.defaultdict(list)
    outcomes: collections.Counter = collections.Counter()
    for row in rows:
        key = tuple(value for name, value in point(row).items() if name != "sp")
        outcome, rate, predicted, _, reserved = results.get(key, (None,) * 5)
        outcomes[outcome] += 1
        if outcome == "ok":
            cells[row["model"], row["nodes"]].append((row, rate, predicted, reserved))
    print("outcomes of the rehearsals:", dict(outcomes))
    print("| model | nodes | rehearsed | modelled | plan | lowest tp, then pp | measured / modelled tokens/s, median |")
    print("|---|---|---|---|---|---|---|")
    columns = collections.defaultdict(list)
    for (model, nodes), found in sorted(cells.items()):
        truth = [float(row["tok_s_gpu"]) for row, *_ in found]
        orders = {"modelled": [rate for _, rate, *_ in found],
                  "plan": [row["gbs"] / predicted for row, _, predicted, _ in found],
                  "lowest tp, then pp": [(-row["tp"], -row["pp"]) for row, *_ in found]}
        # An order that ties every row says nothing.
        values = {name: spearman(order, truth) if len(set(order)) > 1 else 0.0 for name, order in orders.items()}
        ratio = statistics.median(true / rate for true, rate in zip(truth, orders["modelled"]))
        print(f"| {model} | {nodes} | {len(found)} | " + " | ".join(f"{v:.2f}" for v in values.values()) + f" | {ratio:.2f} |")
        for name, value in values.items():
            columns[name].append(value)
    for name, column in columns.items():
        print(f"{name}: median {statistics.median(column):.2f}, {min(column):.2f} to {max(column):.2f}")
    every = [found for cell in cells.values() for found in cell]
    ratios = [reserved / 1e9 / float(row["mem_gb"]) for row, _, _, reserved in every if row["mem_gb"]]
    print(f"reserved here / memory as charted: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("db", type=pathlib.Path)
    parser.add_argument("--per-cell", type=int, default=16)
    parser.add_argument("--max-cost", type=int, default=128, help="largest stages x micro-steps of a configuration")
    parser.add_argument("--max-nodes", type=int, default=64)
    parser.add_argument("--catalogue", action="store_true", help="phantoms as they are without this cluster's own")
    given = parser.parse_args()
    rows = list(chosen(given.per_cell, given.max_cost, given.max_nodes))
    groups = collections.defaultdict(list)
    for row, far_message_ns in slow_messages(given.bin / "sweep", rows):
        groups[0 if given.catalogue else far_message_ns].append(row)
    for far_message_ns, some in sorted(groups.items()):
        rehearse(given, some, far_message_ns)
    compare(rows, rehearsed(given.db))


if __name__ == "__main__":
    main()
