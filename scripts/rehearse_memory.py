#!/usr/bin/env python3
"""rehearse_memory.py BIN_DIR DB [--random N]: peak bytes that `sweep-rank dry-run` predicts, beside those that LibTorch's allocator
counts on phantom GPUs, for 40 configurations of dense models and experts; with --random, the plan's reserved bytes beside those of the
allocator, for N random configurations of every axis (scripts/memory_accuracy.py) that fit. Run again, it only compares."""
import argparse
import json
import pathlib
import random
import sqlite3
import statistics
import subprocess

from memory_accuracy import differing, grid_of, point

BASE = {"hardware": "h100-sxm-80gb", "gpus_per_node": 8, "seq_len": 4096, "precision": "bf16_mixed", "micro_batch_size": 1}
MODELS = [{"name": "dense", "base": "llama3-8b", "layers": 8}, {"name": "experts", "base": "mixtral-8x7b", "layers": 4},
          {"name": "small", "base": "qwen2-0.5b", "layers": 4}]
DENSE = [
    {"precision": "bf16"}, {"precision": "bf16", "zero": 1}, {"precision": "bf16", "zero": 2}, {"precision": "bf16", "zero": 3},
    {}, {"zero": 1}, {"zero": 2}, {"zero": 3}, {"zero": 3, "micro_batch_size": 4}, {"zero": 3, "reshard_after_forward": False},
    {"precision": "bf16_master"}, {"precision": "bf16_master", "grad_dtype": "fp32", "zero": 1},
    {"precision": "bf16_master", "zero": 2, "grad_accum": 2}, {"precision": "bf16_master", "zero": 3},
    {"precision": "fp16", "zero": 1}, {"zero": 1, "dp_shard": 2}, {"zero": 1, "grad_clip": True},
    {"tp": 2}, {"tp": 4, "sp": True}, {"tp": 8, "sp": True, "micro_batch_size": 4}, {"tp": 2, "sp": True, "zero": 3},
    {"pp": 2, "grad_accum": 4}, {"pp": 4, "grad_accum": 8, "zero": 1}, {"pp": 2, "tp": 2, "sp": True, "grad_accum": 4, "zero": 1},
    {"pp": 2, "vpp": 2, "schedule": "interleaved", "grad_accum": 4}, {"cp": 2, "zero": 1}, {"cp": 4, "zero": 3, "cp_comm_type": "all_to_all"},
    {"cp": 2, "tp": 2, "pp": 2, "grad_accum": 2}, {"recompute": "selective", "zero": 1}, {"recompute": "full", "zero": 3, "micro_batch_size": 4},
    {"recompute": "full", "recompute_every": 2}, {"activation_offload": True, "zero": 1}, {"zero": 1, "micro_batch_size": 8}]
SMALL = [{"offload": "optimizer", "zero": 1}, {"offload": "parameters", "zero": 3}]  # offloaded states take this machine's memory
EXPERTS = [
    {"precision": "bf16", "ep": 8}, {"ep": 8, "zero": 1}, {"ep": 4, "zero": 3}, {"precision": "bf16_master", "ep": 2, "tp": 2, "zero": 1},
    {"ep": 4, "pp": 2, "grad_accum": 2, "recompute": "full"}]


def planned(bin_dir, file):
    lines = subprocess.run([bin_dir / "sweep", "plan", file, "--json", "--no-dry-run"], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def predicted(bin_dir, plan):
    trials = "".join(json.dumps(entry["trial"]) + "\n" for entry in plan)
    done = subprocess.run([bin_dir / "sweep-rank", "dry-run", "--backend", "cuda"], input=trials, capture_output=True, text=True, check=True)
    return dict(zip((entry["id"] for entry in plan), map(json.loads, done.stdout.splitlines())))


def label(point):
    """A point of the grid in the words of the grid: what differs from BASE."""
    words = [f"{key} {str(value).lower()}" for key, value in point.items() if key not in ("model", "precision")]
    return ", ".join([point["model"], point.get("precision", BASE["precision"]), *words])


MOST_RANKS = 8  # limit of a random configuration
FIRST_LINE = 2  # line of the first point in a grid's file
ROOM = 0.97  # share of the limit: a trial that needs more may end out of memory


def random_grid(bin_dir, file, count, seed):
    """A grid of as many configurations on GPUs as asked for that the plan admits and that fit."""
    draw = random.Random(seed)
    kept: list[dict] = []
    while len(kept) < count:
        points = [one for one in (point(draw) for _ in range(200))
                  if one["hardware"] != "cpu" and one["offload"] == "none" and one["dp"] * one["tp"] * one["pp"] * one["cp"] <= MOST_RANKS]
        write_by_lines(file, grid_of(points))
        fitting = [entry for entry in planned(bin_dir, file)
                   if entry["admitted"] and entry["predicted_bytes"] < ROOM * entry["predicted_memory"]["limit_bytes"]]
        kept += [points[int(entry["source"].rsplit(":", 1)[1]) - FIRST_LINE] for entry in fitting]
    write_by_lines(file, grid_of(kept[:count]))


def write_by_lines(file, grid):
    """A point of `include` on each line, so that a trial's source says which one it is."""
    points = ",\n".join(map(json.dumps, grid.pop("include")))
    file.write_text(json.dumps(grid)[:-1] + f', "include": [\n{points}\n]}}')


def distribution(name, errors, within):
    errors = sorted(errors)
    near = sum(abs(value) <= within for value in errors)
    print(f"{name}: {near} of {len(errors)} within {within:.0%}; median {statistics.median(errors):+.2%}, {errors[0]:+.2%} to {errors[-1]:+.2%}")


def compare_reserved(bin_dir, file, found):
    """Allocated bytes by the plan, reserved bytes by the dry run, beside those of the allocator."""
    admitted = [entry for entry in planned(bin_dir, file) if entry["admitted"]]
    ran = [entry for entry in admitted if found.get(entry["id"], (None,))[0] == "ok"]
    told = predicted(bin_dir, ran)
    rows = []
    for entry in ran:
        _, allocated, reserved, _ = found[entry["id"]]
        rows.append((max(told[entry["id"]]["reserved_bytes"]) / reserved - 1, entry["predicted_bytes"] / allocated - 1, allocated, reserved, entry))
    distribution("allocated, plan", [row[1] for row in rows], 0.03)
    distribution("reserved, dry run", [row[0] for row in rows], 0.05)
    for off, _, allocated, reserved, entry in sorted(rows, key=lambda row: row[0]):
        if abs(off) > 0.05:
            print(f"{off:+8.2%}  allocated {allocated / 1e6:.0f} MB, reserved {reserved / 1e6:.0f} MB  "
                  f"{entry['trial']['spec']['family']} {entry['trial']['spec']['layers']} layers  {differing(entry['trial'])}")
    for entry in admitted:
        if entry not in ran:
            outcome = found.get(entry["id"], ("not run",))
            print(outcome[0], outcome[-1] or "", differing(entry["trial"]))


def results_of(db):
    with sqlite3.connect(db) as connection:
        return {row[0]: row[1:] for row in connection.execute(
            "select trial, outcome, peak_allocated_bytes, peak_reserved_bytes, oom_part from results")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("db", type=pathlib.Path)
    parser.add_argument("--random", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    bin_dir, db = options.bin_dir, options.db
    file = db.with_suffix(".yaml")
    if options.random:
        random_grid(bin_dir, file, options.random, options.seed)
        subprocess.run([bin_dir / "sweep", "run", file, "--rehearse", "--rehearse-ranks", "1", "--db", db], check=False)
        compare_reserved(bin_dir, file, results_of(db))
        return
    compare_listed(bin_dir, db, file)


def compare_listed(bin_dir, db, file):
    families: dict[str, list] = {"dense": DENSE, "experts": EXPERTS, "small": SMALL}
    points = [{"model": model, **point} for model, listed in families.items() for point in listed]
    grid = {"name": "memory", "base": BASE, "measure": {"warmup_steps": 1, "steps": 1}, "include": points,
            "grid": {"model": MODELS}, "where": ["tp > 1"]}  # the grid names the models; its own points are dropped
    file.write_text(json.dumps(grid, indent=1))
    subprocess.run([bin_dir / "sweep", "run", file, "--rehearse", "--db", db], check=False)
    order = {entry["source"]: entry for entry in planned(bin_dir, file) if entry["admitted"]}
    plan = [order[source] for source in sorted(order, key=lambda source: int(source.rsplit(":", 1)[1]))]
    told = predicted(bin_dir, plan)
    found = results_of(db)
    print("| configuration | outcome | dry run, MB | rehearsed, MB | difference | reserved, MB | plan's estimate |")
    print("|---|---|---|---|---|---|---|")
    off = []
    for entry, name in zip(plan, map(label, points), strict=True):
        outcome, allocated, reserved, part = found[entry["id"]]
        dry = told[entry["id"]].get("peak_rank_bytes")
        if dry is None or outcome != "ok":
            print(f"| {name} | {outcome} {part or ''} | {dry / 1e6 if dry else told[entry['id']]['error']} | | | | |")
            continue
        off.append(dry / allocated - 1)
        print(f"| {name} | {outcome} | {dry / 1e6:.0f} | {allocated / 1e6:.0f} | {off[-1]:+.2%} | {reserved / 1e6:.0f} |"
              f" {entry['predicted_bytes'] / allocated - 1:+.0%} |")
    within = sum(abs(value) <= 0.02 for value in off)
    print(f"\n{len(off)} compared, {within} within 2 %; median {statistics.median(off):+.2%}, {min(off):+.2%} to {max(off):+.2%}")


if __name__ == "__main__":
    main()
