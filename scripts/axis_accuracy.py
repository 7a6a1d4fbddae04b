#!/usr/bin/env python3
"""axis_accuracy.py BIN [--db FILE] [--model NAME]...: whether the times that `sweep plan` predicts for a GPU nobody calibrated follow the axes
of the built-in step as its rehearsals on phantom GPUs do. Each row changes axes of a base; its ratios are times over the base's. --db keeps
the rehearsals, and takes those that are there. Prints a row for each change, then for each model Spearman and how many ratios are near."""
import argparse
import csv
import io
import json
import os
import pathlib
import subprocess
import tempfile

from predict_accuracy import spearman

ALONE = {"gpus_per_node": 1, "dp": 1, "micro_batch_size": 1, "global_batch_size": 1}
COMMON: list[dict] = [
    {"precision": "bf16_master"}, {"precision": "bf16_mixed"}, {"precision": "bf16_amp"}, {"precision": "fp16_amp"}, {"precision": "fp32"},
    {"precision": "fp32", "tf32": True}, {"precision": "fp8"},
    *({"fused_kernels": word} for word in ("none", "no_norm", "no_rope", "no_mlp", "no_loss")),
    {"precision": "bf16_amp", "fused_kernels": "none"},
    {"attention": "math"}, {"attention": "cudnn"}, {"precision": "bf16_amp", "attention": "math"},
    {"recompute": "selective"}, {"recompute": "full"}, {"attention": "math", "recompute": "selective"},
    {"cuda_graph": True}, {"grad_clip": True}, {"optimizer": "foreach"}, {"optimizer": "plain"}, {"optimizer": "sgd"},
    {"grad_accum": 4, "global_batch_size": 4}, {"grad_accum": 4, "global_batch_size": 4, "grad_dtype": "fp32"},
]
DIVIDED: list[dict] = [
    {"dp": 4, "global_batch_size": 4}, {"dp": 4, "global_batch_size": 4, "grad_bucket_mb": 400}, {"dp": 4, "global_batch_size": 4, "zero": 1},
    {"dp": 4, "global_batch_size": 4, "zero": 3}, {"dp": 4, "global_batch_size": 4, "zero": 3, "reshard_after_forward": False},
    {"dp": 4, "global_batch_size": 4, "zero": 3, "prefetch_forward": 0, "prefetch_backward": 0},
    {"dp": 4, "global_batch_size": 4, "zero": 3, "precision": "bf16_mixed"},
    {"dp": 4, "global_batch_size": 4, "zero": 3, "dp_shard": 2},
    {"tp": 4}, {"tp": 4, "sp": True}, {"tp": 4, "sp": True, "tp_overlap": True}, {"tp": 4, "fused_kernels": "none"},
    {"cp": 4}, {"cp": 4, "cp_comm_type": "all_to_all"},
    *({"pp": 4, "grad_accum": 4, "global_batch_size": 4, **more} for more in
      ({}, {"schedule": "gpipe"}, {"schedule": "zero_bubble"})),
]
EXPERTS: list[dict] = [{"dp": 4, "global_batch_size": 4}] + [
    {"dp": 4, "ep": 4, "global_batch_size": 4, **more} for more in
    ({}, {"routing": "skewed"}, {"routing": "skewed", "capacity_percent": 120}, {"fused_kernels": "none"})]
MODELS: dict[str, tuple[dict, dict, list[dict]]] = {
    "llama3-8b": ({"name": "llama3-8b-4", "base": "llama3-8b", "layers": 4}, {"seq_len": 4096}, COMMON + DIVIDED),
    "gpt2-xl": ({"name": "gpt2-xl-8", "base": "gpt2-xl", "layers": 8}, {"seq_len": 1024, "micro_batch_size": 4, "global_batch_size": 4}, COMMON),
    "qwen2.5-0.5b": ({"name": "qwen2.5-0.5b-8", "base": "qwen2.5-0.5b", "layers": 8}, {"seq_len": 512}, COMMON),
    "mixtral": ({"name": "mixtral-2", "base": "mixtral-8x7b", "layers": 2}, {"seq_len": 4096}, EXPERTS),
}
NEAR = 0.15


def output(*words):
    return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout


def grid_of(name):
    model, base, changes = MODELS[name]
    def row(change):
        out = {"model": model["name"], "precision": "bf16", **ALONE, **base, **change}
        gpus = 1
        for degree in ("dp", "tp", "pp", "cp"):
            gpus *= out.get(degree, 1)
        out["gpus_per_node"] = gpus
        out["global_batch_size"] = out["dp"] * out["micro_batch_size"] * out.get("grad_accum", 1)
        return out
    return {"name": name.replace(".", "-"), "base": {"hardware": "h100-sxm-80gb"}, "grid": {"model": [model]}, "where": ["tp > 1 and tp == 1"],
            "limits": {"memory_margin_percent": 900}, "measure": {"warmup_steps": 3, "steps": 2},
            "include": [row(change) for change in [{}, *changes]]}, [{}, *changes]


def planned(sweep, grid, folder):
    """(trial, predicted ms) of a grid's one trial; the plan's own order is by time"""
    path = folder / "one.yaml"
    path.write_text(json.dumps(grid))
    row = next(csv.DictReader(io.StringIO(output(sweep, "plan", path, "--csv", "--no-dry-run"))))
    return row["trial"], float(row["predicted_ms"] or "nan")


def words(change):
    return ", ".join(f"{key} {value}" for key, value in change.items() if key != "global_batch_size") or "the base"


def table(sweep, name, db, folder):
    grid, changes = grid_of(name)
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(grid))
    subprocess.run([sweep, "run", path, "--rehearse", "--db", db, "--yes"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = {row["trial"]: row["step_ms"] for row in json.loads(output(sweep, "query", "--db", db, "--json",
            f"SELECT trial, step_ms FROM results WHERE step_ms IS NOT NULL AND sweep = '{grid['name']}.rehearsal'"))}
    told = [planned(sweep, {**grid, "include": [row]}, folder) for row in grid["include"]]
    base_seen, base_told = seen[told[0][0]], told[0][1]
    print(f"\n| {name} | rehearsed, ms | ratio | predicted, ms | ratio | |\n|---|---|---|---|---|---|")
    pairs = []
    for change, (trial, ms) in zip(changes, told):
        if trial not in seen:
            print(f"| {words(change)} | | | {ms:.2f} | {ms / base_told:.3f} | not rehearsed |")
            continue
        of_phantom, of_plan = seen[trial] / base_seen, ms / base_told
        pairs.append((of_phantom, of_plan))
        print(f"| {words(change)} | {seen[trial]:.2f} | {of_phantom:.3f} | {ms:.2f} | {of_plan:.3f} | {100 * (of_plan / of_phantom - 1):+.0f} % |")
    near = sum(abs(b / a - 1) <= NEAR for a, b in pairs[1:])
    print(f"\n{name}: Spearman {spearman([a for a, _ in pairs], [b for _, b in pairs]):.2f}; within {NEAR:.0%}: {near} of {len(pairs) - 1}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--db", type=pathlib.Path, help="keeps the rehearsals")
    parser.add_argument("--model", action="append", choices=MODELS, help="only these")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sweep-axes-") as folder:
        db = options.db or pathlib.Path(folder) / "db"
        for name in options.model or MODELS:
            table(options.bin / "sweep", name, os.fspath(db), pathlib.Path(folder))


if __name__ == "__main__":
    main()
