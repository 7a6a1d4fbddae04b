#!/usr/bin/env python3
"""rehearse_pytorch.py BIN_DIR DB: peak bytes of 16 layouts by rehearsal on two phantom H100s, beside those of PyTorch's FSDP2, DDP and tensor
parallelism there (tests/phantom/torch_memory.py; the Python that runs this has torch and transformers), both taken apart by what
the bytes are. MB are 10^6 bytes."""
import collections
import json
import pathlib
import sqlite3
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BASE = {"hardware": "h100-sxm-80gb", "gpus_per_node": 2, "precision": "bf16_mixed", "micro_batch_size": 1, "seq_len": 3840, "model": "llama-2"}
LLAMA, GPT2 = {"name": "llama-2", "base": "llama3-8b", "layers": 2}, {"name": "gpt2-24", "base": "gpt2-xl", "layers": 24}
CASES: list[tuple[dict, dict]] = [  # ours, PyTorch's
    ({"zero": 3}, {}),
    ({"zero": 3, "micro_batch_size": 4}, {"sequences": 4}),
    ({"zero": 3, "micro_batch_size": 4, "recompute": "full"}, {"sequences": 4, "recompute": True}),
    ({"zero": 3, "reshard": False}, {"reshard": False}),
    ({"zero": 3, "micro_batch_size": 4, "reshard": False}, {"sequences": 4, "reshard": False}),
    ({"zero": 2}, {"reshard": False}),
    ({"zero": 3, "precision": "bf16"}, {"mixed": False}),
    ({"zero": 3, "precision": "bf16", "micro_batch_size": 4, "recompute": "full"}, {"mixed": False, "sequences": 4, "recompute": True}),
    ({"precision": "bf16"}, {"layout": "ddp", "mixed": False}),
    ({}, {"layout": "ddp"}),
    ({"tp": 2, "precision": "bf16"}, {"layout": "tp", "mixed": False}),
    ({"tp": 2, "precision": "bf16", "micro_batch_size": 4}, {"layout": "tp", "mixed": False, "sequences": 4}),
    ({"tp": 2, "sp": True, "precision": "bf16"}, {"layout": "tp_sp", "mixed": False}),
    ({"tp": 2, "sp": True, "precision": "bf16", "micro_batch_size": 4}, {"layout": "tp_sp", "mixed": False, "sequences": 4}),
    ({"model": "gpt2-24", "seq_len": 1024, "zero": 3, "micro_batch_size": 4}, {"model": "gpt2", "sequences": 4}),
    ({"model": "gpt2-24", "seq_len": 1024, "zero": 3, "micro_batch_size": 4, "recompute": "full"}, {"model": "gpt2", "sequences": 4, "recompute": True}),
]
PARTS = ["weights", "moments", "gradients", "logits", "weights in use", "activations"]
STATES = {"bf16": (2, 4, 2), "bf16_mixed": (4, 8, 4)}  # bytes of a parameter: weights, moments, gradients


def ask(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout.splitlines()


def numbers_of(spec, trial):
    """Elements of what is no activation: tokens x vocabulary; the tables, a block and its linear layers."""
    hidden, wide, vocab = spec["hidden_size"], spec["intermediate_size"], spec["vocab_size"]
    if spec["swiglu"]:
        linears = [hidden * hidden, hidden * spec["kv_heads"] * spec["head_dim"], hidden * wide]
        block = 2 * linears[0] + 2 * linears[1] + 3 * linears[2] + 2 * hidden
    else:
        linears = [hidden * hidden, 3 * hidden * hidden, hidden * wide]
        block = linears[0] + linears[1] + 2 * linears[2] + 9 * hidden + wide
    tables = [vocab * hidden, vocab * hidden + hidden, vocab * hidden + (trial["seq_len"] + 2) * hidden]
    return {"logits": [trial["seq_len"] * trial["micro_batch_size"] * vocab], "weights in use": [*tables, block, *linears]}


def part_of(one, numbers, ranks):
    """`logits`, `weights in use` (their gradients too) or `activations`, by the size of the tensor."""
    if "fsdp" in one.get("where", ""):
        return "weights in use"
    near = {part: min(abs(one["bytes"] / (number * width / share) - 1) for number in listed for width in (2, 4) for share in (1, ranks))
            for part, listed in numbers.items()}
    part = min(near, key=lambda one: near[one])
    return part if near[part] < 1e-3 else "activations"


def taken_apart(tensors, trial):
    parts: collections.Counter[str] = collections.Counter()
    numbers = numbers_of(trial["spec"], trial)
    for one in tensors:
        parts["lasting" if one.get("lasting") else part_of(one, numbers, trial["gpus_per_node"])] += one["bytes"] * one["count"]
    return parts


def states_of(lasting, trial):
    """Bytes that last in our step, by the formula of docs/grid.md: weights, moments, gradients."""
    shared = {0: (1, 1, 1), 2: (1, 2, 2), 3: (2, 2, 2)}[trial["zero"]]
    shares = [width / by for width, by in zip(STATES[trial["precision"]], shared)]
    return {part: lasting * share / sum(shares) for part, share in zip(PARTS, shares)}


def ours(bin_dir, db):
    """For each case: trial, the rehearsal's findings, parts and tensors of the dry run's peak."""
    # The grid names the models; its own points are dropped.
    grid = {"name": "pytorch", "base": {k: v for k, v in BASE.items() if k != "model"}, "measure": {"warmup_steps": 1, "steps": 1},
            "grid": {"model": [LLAMA, GPT2]}, "where": ["gpus_per_node > 2"], "include": [{"model": BASE["model"], **case} for case, _ in CASES]}
    file = db.with_suffix(".yaml")
    file.write_text(json.dumps(grid, indent=1))
    subprocess.run([bin_dir / "sweep", "run", file, "--rehearse", "--db", db], check=False, stdout=sys.stderr)
    plan = [json.loads(line) for line in ask([bin_dir / "sweep", "plan", file, "--json"])]
    plan = sorted((entry for entry in plan if entry["admitted"]), key=lambda entry: int(entry["source"].rsplit(":", 1)[1]))
    trials = "".join(json.dumps(entry["trial"]) + "\n" for entry in plan)
    told = map(json.loads, ask([bin_dir / "sweep-rank", "dry-run", "--backend", "cuda", "--tensors"], input=trials))
    with sqlite3.connect(db) as connection:
        found = {row[0]: row[1:] for row in connection.execute(
            "select trial, outcome, peak_allocated_bytes, peak_reserved_bytes from results")}
    for entry, dry in zip(plan, told, strict=True):
        trial = entry["trial"]
        parts = taken_apart(dry["peak_tensors"], trial)
        yield trial, found[entry["id"]], {**parts, **states_of(parts["lasting"], trial)}, dry["peak_tensors"]


def theirs(bin_dir, trial, case):
    text = json.dumps({"layers": trial["spec"]["layers"], "seq_len": trial["seq_len"], **case})
    lines = ask([ROOT / "scripts/phantom", "--build", bin_dir.parent, "--gpus", "2", "--", sys.executable, "-m", "torch.distributed.run", "--standalone",
                 "--nproc-per-node", "2", ROOT / "tests/phantom/torch_memory.py", text])
    found = json.loads(next(line for line in lines if line.startswith("{")))
    parts = taken_apart(found["tensors"], trial)
    parts = {**parts, "weights": found["weights"], "moments": found["optimizer"],
             "gradients": found["lasting"] - found["weights"] - found["optimizer"]}
    return found, parts


def row(cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main():
    bin_dir, db = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    row(["model", "sweep", "PyTorch", "allocated: sweep", "PyTorch", "difference", "reserved: sweep", "PyTorch", *PARTS])
    row(["---"] * (8 + len(PARTS)))
    kept = []
    for (case, other), (trial, (outcome, allocated, reserved), parts, tensors) in zip(CASES, ours(bin_dir, db), strict=True):
        if outcome != "ok":
            row([case, outcome])
            continue
        found, other_parts = theirs(bin_dir, trial, other)
        mb = [f"{parts.get(part, 0) / 1e6:.0f} / {other_parts.get(part, 0) / 1e6:.0f}" for part in PARTS]
        named = [", ".join(f"{key} {str(value).lower()}" for key, value in one.items() if key not in ("model", "seq_len")) for one in (case, other)]
        row([trial["model"], *named, f"{allocated / 1e6:.0f}", f"{found['allocated'] / 1e6:.0f}", f"{allocated / found['allocated'] - 1:+.0%}",
             f"{reserved / 1e6:.0f}", f"{found['reserved'] / 1e6:.0f}", *mb])
        kept.append({"case": case, "other": other, "sweep": tensors, "pytorch": found})
    db.with_suffix(".tensors.json").write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
