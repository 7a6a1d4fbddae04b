#!/usr/bin/env python3
"""rehearse_published.py BIN_DIR DB [--per-table N] [--max-cost N] [--catalogue]: modelled step times of rehearsals against rates that trainers' authors published.

Rehearses layouts of sweeps/data/published_training.csv and published_held_out.csv with the built-in step on phantom GPUs, by roles, and compares
the modelled tokens/s and GPU with the published ones, as docs/measurements/2026-11-29-rehearsed-times.md. Phantoms have the speed of products and
the host's time of each trainer's profile (phantom_constants.py), none of which was fitted on these rows; --catalogue leaves that out. torchtitan
without `compile` has unfused operators; tp_overlap is left out, whose pieces have four times the launches. Run again, it goes on where it was."""
import argparse
import collections
import csv
import hashlib
import json
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess

from phantom_constants import constants
from predict_accuracy import spearman

DATA = pathlib.Path(__file__).resolve().parent.parent / "sweeps/data"
TABLES = ("published_training.csv", "published_held_out.csv")
TRAINERS = ("torchtitan", "composer", "megatron")
MODEL = ("layers", "hidden_size", "heads", "kv_heads", "intermediate_size", "vocab_size", "experts", "experts_per_token", "max_positions")
SAME = {"dp": "dp", "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "zero": "zero", "dp_shard": "dp_shard", "mbs": "micro_batch_size",
        "gas": "grad_accum", "seq_len": "seq_len", "vpp": "vpp"}
WORDS = ("precision", "attention", "grad_dtype", "recompute", "schedule")
GPUS_OF_A_NODE = {"gb200-186gb": 4, "gb300-288gb": 4}
WITHIN = 0.15


def published(per_table, max_cost):
    """Rows that ran and state a rate, of trainers whose layouts the step has, with at most so many stages x micro-steps: of each trainer and hardware
    so many at random, by a fixed seed."""
    tables = collections.defaultdict(list)
    for name in TABLES:
        with open(DATA / name, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["status"] == "ok" and row["tok_s_gpu"] and row["trainer"] in TRAINERS and int(row["pp"]) * int(row["gas"]) <= max_cost:
                    tables[row["trainer"], row["hardware"]].append(row)
    for rows in tables.values():
        yield from random.Random(1).sample(rows, min(per_table, len(rows)))


def model_of(row):
    if row["model"]:
        return row["model"]
    out = {key: int(row[key]) for key in MODEL if row.get(key)}
    return {"family": row["family"], **out, **({"tie_embeddings": row["tie_embeddings"] == "true"} if row["tie_embeddings"] else {})}


def point(row):
    node = min(GPUS_OF_A_NODE.get(row["hardware"], 8), int(row["gpus"]))
    out = {"model": model_of(row), "hardware": row["hardware"], "gpus_per_node": node, "nodes": int(row["gpus"]) // node}
    out |= {name: int(row[key]) for key, name in SAME.items() if row.get(key)}
    out |= {key: row[key] for key in WORDS if row.get(key)}
    out["sp"] = row["sp"] == "true" if row["sp"] else out["tp"] > 1
    if row["trainer"] == "torchtitan" and "compile" not in row["note"]:
        out["fused_kernels"] = "none"
    return out


def rehearse(tool, db, row, catalogue):
    """The row's modelled tokens/s and GPU, or why there is none."""
    place = point(row)
    said = {} if catalogue else constants(row["profile"] or row["trainer"], row["hardware"], fused="fused_kernels" not in place)
    name = "published-" + hashlib.sha256(json.dumps([place, said], sort_keys=True).encode()).hexdigest()[:12]
    file = db.with_suffix(".yaml")
    grid = {"name": name, "base": place, "grid": {"optimizer": ["fused"]}, "limits": {"memory_margin_percent": 900}}
    file.write_text(json.dumps(grid, indent=1), encoding="utf-8")
    done = subprocess.run([tool, "run", file, "--rehearse", "--rehearse-ranks", "1", "--yes", "--db", db], capture_output=True, text=True,
                          env={**os.environ, "SWEEP_PHANTOM_PROFILE": json.dumps(said)})
    if db.exists():
        with sqlite3.connect(db) as connection:
            found = connection.execute("select tokens_per_s_gpu, outcome, reason from results where sweep = ?", (name + ".rehearsal",)).fetchone()
            if found:
                return found[0], f"{found[1]}: {found[2]}"[:120]
    return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"


def off(pairs):
    """Of a step's time: modelled over published."""
    return [float(row["tok_s_gpu"]) / rate for row, rate in pairs]


def table(groups):
    print("| trainer | hardware | rows | Spearman | step time, modelled / published: median (least, most) | median error | after one factor |")
    print("|---|---|---|---|---|---|---|")
    for (trainer, hardware), pairs in sorted(groups.items()):
        ratios = off(pairs)
        middle = statistics.median(ratios)
        order = f"{spearman([rate for _, rate in pairs], [float(row['tok_s_gpu']) for row, _ in pairs]):.2f}" if len(pairs) > 2 else "-"
        error, again = (statistics.median(abs(r / by - 1) for r in ratios) for by in (1, middle))
        print(f"| {trainer} | {hardware} | {len(pairs)} | {order} | {middle:.2f} ({min(ratios):.2f}, {max(ratios):.2f}) | {error:.0%} | {again:.0%} |")
    every = off([pair for pairs in groups.values() for pair in pairs])
    errors = [abs(r - 1) for r in every]
    print(f"\nAll {len(every)} rows: median error of a step's time {statistics.median(errors):.1%}; within {WITHIN:.0%}: {sum(e <= WITHIN for e in errors)}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("db", type=pathlib.Path)
    parser.add_argument("--per-table", type=int, default=12, help="rows of each trainer and hardware")
    parser.add_argument("--max-cost", type=int, default=256, help="largest stages x micro-steps of a row")
    parser.add_argument("--catalogue", action="store_true", help="phantoms as they are without a trainer's own")
    parser.add_argument("--rows", help="also writes each row's ratio to this file")
    given = parser.parse_args()
    groups, lines = collections.defaultdict(list), []
    none: collections.Counter[str] = collections.Counter()
    for row in published(given.per_table, given.max_cost):
        rate, why = rehearse(given.bin / "sweep", given.db, row, given.catalogue)
        if rate:
            groups[row["trainer"], row["hardware"]].append((row, rate))
            lines.append(f"{off([(row, rate)])[0]:.3f} {row['trainer']} {row['hardware']} {json.dumps(point(row))} {row['note']}")
        else:
            none[why] += 1
    table(groups)
    for why, count in none.most_common():
        print(f"not rehearsed: {count}: {why}")
    if given.rows:
        pathlib.Path(given.rows).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
