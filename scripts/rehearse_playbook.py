#!/usr/bin/env python3
"""rehearse_playbook.py BIN_DIR DB [--per-cell N] [--max-cost N] [--max-nodes N] [--cell MODEL NODES] [--catalogue]: what are modelled step times worth?

Rehearses configurations that the Ultra-Scale Playbook's authors measured (sweeps/data) on phantom GPUs, by roles, and compares
the order by modelled tokens/s in each (model, nodes) cell with the measured order, by Spearman's coefficient. Beside it stand
two orders that need no rehearsal: the plan's prediction, and "lowest tp, then lowest pp". Run again, it goes on where it was.
Phantoms are given what is this program's and this cluster's own, by the profile nanotron, which was fitted on these rows: the speed of products
and the host's time of a launch (phantom_constants.py), how long its host waits for a collective of tp to start, and where its effects hold slow
messages between nodes and slow collectives of tp; by sweeps/data/playbook_cluster.json the links over many nodes. --catalogue leaves all of that
out. The step has unfused operators, as nanotron. It keeps less memory: retries of nanotron's allocator, which phantoms cannot see, are counted by
`sweep predict`, and a column of its own adds them.
"""
import argparse
import collections
import csv
import hashlib
import json
import math
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import tempfile

from phantom_constants import constants, profile
from predict_accuracy import NANOTRON, Tool, spearman

REPO = pathlib.Path(__file__).resolve().parent.parent
BASE = {"hardware": "h100-sxm-80gb", "gpus_per_node": 8, "seq_len": 4096, "precision": "bf16_master", "grad_dtype": "fp32", "fused_kernels": "none"}
CLUSTER = REPO / "sweeps/data/playbook_cluster.json"
PROFILE = profile("nanotron")
PARAMETERS = {"1B": 1.34e9, "8B": 8.85e9}
HOST = constants("nanotron", BASE["hardware"], fused=False)
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


def seen(row):
    """Of the profile's effects those that hold for a row, as the share of such rows that had each."""
    out: dict[str, float] = collections.defaultdict(float)
    quantities = {**row, "grad_accum": row["gas"], "micro_batch_size": row["mbs"], "parameters": PARAMETERS[row["model"]], "tied": row["model"] == "1B"}
    for effect in PROFILE["effects"]:
        if all((low is None or quantities[of] >= low) and (high is None or quantities[of] <= high) for of, (low, high) in effect["when"].items()):
            out[effect["effect"]] = max(out[effect["effect"]], effect["share"])
    return out


def cluster(row, catalogue):
    """Constants of phantoms for a row."""
    if catalogue:
        return {}
    time, now = PROFILE["time"], seen(row)
    hops = now["slow_collectives"] * time["hop_launch_s"] * row["tp"] ** time["hop_power"] / PROFILE["facts"]["collectives"]
    span = row["tp"] / BASE["gpus_per_node"]
    start = time["near_latency_s"] * math.log2(row["tp"]) if span <= 1 else time["far_latency_s"] * span
    return {**json.loads(CLUSTER.read_text()), **HOST, "nccl_host_ns": 12000 + int(1e9 * (hops + start)),
            "far_message_ns": int(1e9 * now["slow_messages"] * time["slow_message_s"])}


def rehearse(given, rows, said):
    name = hashlib.sha256(said.encode()).hexdigest()[:8]
    grid = {"name": f"playbook-{name}", "model": "playbook-1b", "base": BASE, "measure": {"warmup_steps": 1, "steps": 1},
            "include": [point(row) for row in rows]}
    file = given.db.with_suffix(".yaml")
    file.write_text(json.dumps(grid, indent=1))
    subprocess.run([given.bin / "sweep", "run", file, "--rehearse", "--rehearse-ranks", "1", "--db", given.db], check=False,
                   env={**os.environ, "SWEEP_PHANTOM_PROFILE": said})


def rehearsed(db):
    query = ("select model, nodes, dp, tp, pp, zero, micro_batch_size, grad_accum, outcome, tokens_per_s_gpu, predicted_ms,"
             " peak_allocated_bytes, peak_reserved_bytes from results")
    with sqlite3.connect(db) as connection:
        return {row[:8]: row[8:] for row in connection.execute(query)}


def retried(sweep, rows):
    """Seconds of each row's step in which nanotron's allocator frees and asks again, as its profile has it."""
    with tempfile.TemporaryDirectory() as folder:
        return [float(told["retry_s"]) for told in Tool(sweep, folder).predict(rows, *NANOTRON)]


def compare(rows, results, retries):
    """Prints a line per cell: how many ran, and the four coefficients."""
    cells: dict[tuple, list] = collections.defaultdict(list)
    outcomes: collections.Counter = collections.Counter()
    for row, retry_s in zip(rows, retries):
        key = tuple(value for name, value in point(row).items() if name != "sp")
        outcome, rate, predicted, _, reserved = results.get(key, (None,) * 5)
        outcomes[outcome] += 1
        if outcome == "ok":
            step_s = row["gbs"] * BASE["seq_len"] / (rate * row["nodes"] * BASE["gpus_per_node"])
            cells[row["model"], row["nodes"]].append((row, rate, predicted, reserved, rate * step_s / (step_s + retry_s)))
    print("outcomes of the rehearsals:", dict(outcomes))
    print("| model | nodes | rehearsed | modelled | and retries | plan | lowest tp, then pp | measured / modelled tokens/s, median |")
    print("|---|---|---|---|---|---|---|---|")
    columns = collections.defaultdict(list)
    for (model, nodes), found in sorted(cells.items()):
        truth = [float(row["tok_s_gpu"]) for row, *_ in found]
        orders = {"modelled": [rate for _, rate, *_ in found],
                  "and retries": [with_retries for *_, with_retries in found],
                  "plan": [row["gbs"] / predicted for row, _, predicted, *_ in found],
                  "lowest tp, then pp": [(-row["tp"], -row["pp"]) for row, *_ in found]}
        # An order that ties every row says nothing.
        values = {name: spearman(order, truth) if len(set(order)) > 1 else 0.0 for name, order in orders.items()}
        ratio = statistics.median(true / rate for true, rate in zip(truth, orders["and retries"]))
        print(f"| {model} | {nodes} | {len(found)} | " + " | ".join(f"{v:.2f}" for v in values.values()) + f" | {ratio:.2f} |")
        for name, value in values.items():
            columns[name].append(value)
    for name, column in columns.items():
        print(f"{name}: median {statistics.median(column):.2f}, {min(column):.2f} to {max(column):.2f}")
    every = [found for cell in cells.values() for found in cell]
    off = [abs(float(row["tok_s_gpu"]) / rate - 1) for row, *_, rate in every]
    print(f"step time: median error {statistics.median(off):.0%}; within 15 %: {sum(o <= 0.15 for o in off)} of {len(off)}")
    ratios = [reserved / 1e9 / float(row["mem_gb"]) for row, _, _, reserved, _ in every if row["mem_gb"]]
    print(f"reserved here / memory as charted: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("db", type=pathlib.Path)
    parser.add_argument("--per-cell", type=int, default=16)
    parser.add_argument("--max-cost", type=int, default=128, help="largest stages x micro-steps of a configuration")
    parser.add_argument("--max-nodes", type=int, default=64)
    parser.add_argument("--cell", nargs=2, metavar=("MODEL", "NODES"), help="this one alone, as 8B 32")
    parser.add_argument("--catalogue", action="store_true", help="phantoms as they are without this cluster's own")
    given = parser.parse_args()
    rows = [row for row in chosen(given.per_cell, given.max_cost, given.max_nodes)
            if given.cell in (None, [row["model"], str(row["nodes"])])]
    groups = collections.defaultdict(list)
    for row in rows:
        groups[json.dumps(cluster(row, given.catalogue))].append(row)
    for said, some in sorted(groups.items()):
        rehearse(given, some, said)
    compare(rows, rehearsed(given.db), [0.0] * len(rows) if given.catalogue else retried(given.bin / "sweep", rows))


if __name__ == "__main__":
    main()
