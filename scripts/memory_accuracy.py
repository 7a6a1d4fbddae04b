#!/usr/bin/env python3
"""memory_accuracy.py BIN_DIR: the plan's memory model against the dry run of the step, over random configurations of every axis.
Prints the distribution of the error, by part, and the worst configurations. --most-off and --most-below make it a test."""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

MODELS = [("llama3-8b", 8), ("llama3.2-1b", 8), ("llama2-7b", 6), ("mistral-7b", 6), ("qwen2-0.5b", 8), ("qwen2.5-7b", 6), ("gpt2", 8),
          ("gpt2-xl", 8), ("gemma-2b", 6), ("playbook-1b", 8), ("mixtral-8x7b", 4), ("llama3-70b", 4), ("deepseek-v2-lite", 4), ("gemma3-4b", 6),
          ("blenderbot-400m", 6), ("gpt-oss-20b", 3), ("t5-v1_1-large", 6), ("t5-3b", 4)]
SMALL = [("small-llama", 4), ("small-gpt2", 4), ("tiny-llama", 2), ("tiny-gpt2", 2), ("tiny-qwen2", 2),
         ("tiny-deepseek", 4), ("tiny-gemma3", 4), ("tiny-blenderbot", 3), ("tiny-gpt-oss", 2), ("tiny-t5", 3)]
UNTIED = {"llama3-8b", "llama2-7b", "mistral-7b", "llama3-70b", "small-llama"}
EXPERTS = {"mixtral-8x7b", "deepseek-v2-lite", "tiny-deepseek", "gpt-oss-20b", "tiny-gpt-oss"}
GPUS = ["h100-sxm-80gb", "h100-sxm-80gb", "a100-80gb", "b200-180gb", "l4-24gb"]


def often(draw, usual, *others, share=0.6):
    return usual if draw.random() < share else draw.choice(others)


def listed(draw, layers, stages):
    """stage_layers: any split."""
    cuts = sorted(draw.sample(range(1, layers), stages - 1))
    return " ".join(str(end - begin) for begin, end in zip([0, *cuts], [*cuts, layers], strict=True))


def of_encoder_decoder(draw, name, p):
    """The point with dp and zero alone, and lengths of both sides; BlenderBot's positions end at 128."""
    lengths = [64, 512, 1024] if name.startswith("t5") else [32, 64, 128]
    p |= {"tp": 1, "pp": 1, "cp": 1, "seq_len": draw.choice(lengths), "encoder_seq_len": draw.choice([0, 48, lengths[-1]]),
          "micro_batch_size": draw.choice([1, 8, 64])}
    return {key: value for key, value in p.items() if key not in {"lora_rank", "lora_targets", "quantize_base", "lengths", "packing"}}


def point(draw):
    """A random configuration; the plan refuses what cannot be."""
    cpu = draw.random() < 0.15
    name, layers = draw.choice(SMALL if cpu else MODELS)
    p = {"hardware": "cpu" if cpu else draw.choice(GPUS), "dp": draw.choice([1, 1, 2, 4, 8]), "tp": often(draw, 1, 2, 4, 8),
         "pp": often(draw, 1, 2, 4), "cp": often(draw, 1, 2, 4, share=0.75), "zero": draw.choice([0, 1, 2, 3]),
         "micro_batch_size": draw.choice([1, 1, 2, 4]), "grad_accum": draw.choice([1, 1, 2, 4, 8]),
         "seq_len": draw.choice([64, 128, 256] if cpu else [512, 1024, 2048, 4096, 8192]),
         "precision": draw.choice(["fp32", "bf16", "bf16_mixed", "bf16_master", "fp16", "fp8", "bf16_amp", "fp16_amp"]),
         "recompute": often(draw, "none", "selective", "full"), "offload": often(draw, "none", "optimizer", "parameters", "disk", "disk_parameters", share=0.8),
         "optimizer": draw.choice(["fused", "fused", "foreach", "plain", "sgd", "sgd_momentum", "adamw_8bit", "paged_adamw", "adafactor"]), "attention": often(draw, "auto", "flash", "math"),
         "grad_bucket_mb": often(draw, 25, 1, 100), "grad_dtype": often(draw, "auto", "fp32", "bf16"),
         "prefetch_forward": often(draw, 1, 0, 2), "prefetch_backward": often(draw, 1, 0, 2), "backward_prefetch": often(draw, "pre", "post"), "reshard_after_forward": draw.random() < 0.8,
         "sp": draw.random() < 0.5, "tp_overlap": draw.random() < 0.2, "cp_comm_type": draw.choice(["ring", "all_to_all"]),
         "routing": draw.choice(["balanced", "skewed"]), "hot_percent": draw.choice([20, 50, 80]), "capacity_percent": draw.choice([0, 0, 125]),
         "activation_offload": draw.random() < 0.1, "grad_clip": draw.random() < 0.2, "vocab_multiple": often(draw, 1, 64, 128),
         "fused_kernels": often(draw, "all", "none", "no_norm", "no_rope", "no_mlp", "no_loss", share=0.8)}
    if draw.random() < 0.2:
        p["lora_rank"] = draw.choice([8, 16, 64, 256])
        p["lora_targets"] = "attention" if name in EXPERTS else draw.choice(["query_value", "attention", "mlp", "all_linear"])
        if draw.random() < 0.5 and p["offload"] != "parameters":
            p["quantize_base"] = "nf4"
    if draw.random() < 0.15:
        p["lengths"], p["packing"] = draw.choice(["uniform 10 60", "lognormal 300 0.8"]), p["cp"] == 1
    model = {"base": name, "layers": layers if draw.random() < 0.7 else draw.choice([2, 3, 5, 8, 12])}
    if name in UNTIED and draw.random() < 0.2:
        model["tie_embeddings"] = True
    if "blenderbot" in name or "t5" in name:
        p = of_encoder_decoder(draw, name, p)
    if p["tp"] == 1:
        p["sp"] = p["tp_overlap"] = False
    if name in EXPERTS:
        p["ep"] = draw.choice([e for e in (1, 2, 4, 8) if (p["dp"] * p["cp"]) % e == 0])
    if p["pp"] > 1:
        p["schedule"] = draw.choice(["1f1b", "1f1b", "gpipe", "interleaved", "zero_bubble"])
        p["grad_accum"] = draw.choice([2, 4, 8, 16])
        if p["schedule"] == "interleaved":
            p["vpp"], p["grad_accum"] = draw.choice([2, 3]), p["pp"] * draw.choice([1, 2, 3])
            model["layers"] = max(model["layers"], p["pp"] * p["vpp"])
        model["layers"] = max(model["layers"], p["pp"])
        if p["schedule"] != "interleaved" and draw.random() < 0.2:
            p["stage_layers"] = listed(draw, model["layers"], p["pp"])
    if p["recompute"] == "full":
        p["recompute_every"] = often(draw, 1, 2, 3)
    if p["zero"] > 0 and p["dp"] >= 4 and draw.random() < 0.2:
        p["dp_shard"] = p["dp"] // 2
    world = p["dp"] * p["tp"] * p["pp"] * p["cp"]
    p["gpus_per_node"], p["nodes"] = min(world, 8), max(1, world // 8)
    p["global_batch_size"] = p["dp"] * p["micro_batch_size"] * p["grad_accum"]
    return {"model": model, **p}


def grid_of(points):
    """A grid of these points alone."""
    named = []
    models: dict[str, dict] = {}
    for one in points:
        key = json.dumps(one["model"], sort_keys=True)
        models.setdefault(key, {"name": f"m{len(models)}", **one["model"]})
        named.append({**one, "model": models[key]["name"]})
    return {"name": "memory", "measure": {"warmup_steps": 1, "steps": 1}, "grid": {"model": list(models.values())}, "where": ["tp > 1"],
            "include": named}


def planned(bin_dir, points):
    """The answer of `sweep plan --json` for those that the step runs, whatever memory they take."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "grid.yaml"
        file.write_text(json.dumps(grid_of(points)))
        done = subprocess.run([bin_dir / "sweep", "plan", file, "--json", "--no-dry-run"], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        sys.exit(done.stderr)
    plan = [json.loads(line) for line in done.stdout.splitlines()]
    return [entry for entry in plan if (entry["admitted"] or entry["rule"] == "memory") and entry["predicted_bytes"] is not None]


def wanted(trial, only):
    """Whether an axis, or the model's family, has one of the values of `AXIS=VALUE,...`."""
    axis, _, values = only.partition("=")
    return not only or str((trial["spec"] if axis == "family" else trial).get(axis)) in values.split(",")


def sampled(bin_dir, count, seed, only):
    """So many plan entries; each batch is drawn from the same sequence, so that a seed repeats."""
    draw = random.Random(seed)
    found: dict[str, dict] = {}
    while len(found) < count:
        for entry in planned(bin_dir, [point(draw) for _ in range(200)]):
            if wanted(entry["trial"], only):
                found.setdefault(entry["id"], entry)
    return list(found.values())[:count]


def refereed(rank, entries, cache):
    """The dry run's answers by trial id."""
    known = json.loads(cache.read_text()) if cache and cache.exists() else {}
    for backend in ("cuda", "cpu"):
        mine = [e for e in entries if (e["trial"].get("hardware", "cpu") == "cpu") == (backend == "cpu") and e["id"] not in known]
        lines = "".join(json.dumps(e["trial"]) + "\n" for e in mine)
        done = subprocess.run([rank, "dry-run", "--backend", backend], input=lines, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        for entry, line in zip(mine, done.stdout.splitlines(), strict=True):
            known[entry["id"]] = json.loads(line)
        if cache:
            cache.write_text(json.dumps(known))
    return known


def differing(trial):
    """The axes that a trial does not leave at their defaults."""
    return ", ".join(f"{key} {value}" for key, value in sorted(trial.items()) if key != "spec")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--rank", type=pathlib.Path, help="sweep-rank (default: that of BIN_DIR)")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--only", default="", help="AXIS=VALUE,...: trials with one of these values; family: of the model")
    parser.add_argument("--cache", type=pathlib.Path, help="file that keeps the dry run's answers")
    parser.add_argument("--within", type=float, default=0.03)
    parser.add_argument("--share", type=float, default=0, help="fail when fewer than this share are within")
    parser.add_argument("--below", type=float, default=1, help="fail when one is lower than the dry run by more than this")
    parser.add_argument("--worst", type=int, default=10)
    options = parser.parse_args()
    entries = sampled(options.bin_dir, options.count, options.seed, options.only)
    answers = refereed(options.rank or options.bin_dir / "sweep-rank", entries, options.cache)
    rows = []
    for entry in entries:
        answer = answers[entry["id"]]
        if "peak_rank_bytes" in answer:
            rows.append((entry["predicted_bytes"] / answer["peak_rank_bytes"] - 1, entry, answer))
    rows.sort(key=lambda row: row[0])
    errors = [row[0] for row in rows]
    share = sum(abs(e) <= options.within for e in errors) / len(errors)
    refused = [entry for entry in entries if "peak_rank_bytes" not in answers[entry["id"]]]
    print(f"the step refuses {len(refused)}, of {sum(entry['admitted'] for entry in entries)} that the plan admits {sum(entry['admitted'] for entry in refused)}")
    for entry in refused:
        print(f"  {'admitted' if entry['admitted'] else 'pruned by ' + entry['rule']}: {answers[entry['id']]['error']}")
    print(f"{len(rows)} configurations: {share:.1%} within {options.within:.0%}, median "
          f"{statistics.median(errors):+.2%}, lowest {errors[0]:+.2%}, highest {errors[-1]:+.2%}")
    for error, entry, answer in rows[:options.worst] + rows[len(rows) - options.worst:]:
        print(f"{error:+8.2%}  {answer['peak_rank_bytes'] / 1e6:9.1f} MB  {entry['trial']['spec']['family']} {entry['trial']['spec']['layers']} layers  "
              f"{differing(entry['trial'])}")
    sys.exit(0 if share >= options.share and errors[0] >= -options.below else 1)


if __name__ == "__main__":
    main()
