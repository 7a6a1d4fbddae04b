#!/usr/bin/env python3
"""rehearse_memory.py BIN_DIR DB: peak bytes that `sweep-rank dry-run` predicts, beside those that LibTorch's allocator
counts on phantom GPUs, for 40 configurations of dense models and experts. Run again, it only compares."""
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys

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
SMALL = [{"offload": "optimizer", "zero": 1}, {"offload": "parameters", "zero": 3}]  # what is offloaded is this machine's memory
EXPERTS = [
    {"precision": "bf16", "ep": 8}, {"ep": 8, "zero": 1}, {"ep": 4, "zero": 3}, {"precision": "bf16_master", "ep": 2, "tp": 2, "zero": 1},
    {"ep": 4, "pp": 2, "grad_accum": 2, "recompute": "full"}]


def planned(bin_dir, file):
    lines = subprocess.run([bin_dir / "sweep", "plan", file, "--json"], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def predicted(bin_dir, plan):
    trials = "".join(json.dumps(entry["trial"]) + "\n" for entry in plan)
    done = subprocess.run([bin_dir / "sweep-rank", "dry-run", "--backend", "cuda"], input=trials, capture_output=True, text=True, check=True)
    return dict(zip((entry["id"] for entry in plan), map(json.loads, done.stdout.splitlines())))


def label(point):
    """A point of the grid in the words of the grid: what differs from BASE."""
    words = [f"{key} {str(value).lower()}" for key, value in point.items() if key not in ("model", "precision")]
    return ", ".join([point["model"], point.get("precision", BASE["precision"]), *words])


def main():
    bin_dir, db = map(pathlib.Path, sys.argv[1:])
    families: dict[str, list] = {"dense": DENSE, "experts": EXPERTS, "small": SMALL}
    points = [{"model": model, **point} for model, listed in families.items() for point in listed]
    grid = {"name": "memory", "base": BASE, "measure": {"warmup_steps": 1, "steps": 1}, "include": points,
            "grid": {"model": MODELS}, "where": ["tp > 1"]}  # the grid names the models; its own points are dropped
    file = db.with_suffix(".yaml")
    file.write_text(json.dumps(grid, indent=1))
    subprocess.run([bin_dir / "sweep", "run", file, "--rehearse", "--db", db], check=False)
    order = {entry["source"]: entry for entry in planned(bin_dir, file) if entry["admitted"]}
    plan = [order[source] for source in sorted(order, key=lambda source: int(source.rsplit(":", 1)[1]))]
    told = predicted(bin_dir, plan)
    with sqlite3.connect(db) as connection:
        found = {row[0]: row[1:] for row in connection.execute(
            "select trial, outcome, peak_allocated_bytes, peak_reserved_bytes, oom_part from results")}
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
