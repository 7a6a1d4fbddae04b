#!/usr/bin/env python3
"""rehearse_roles.py BIN_DIR [--worlds 8 16] [--only NAME...] [--torchtitan DIR] [--megatron DIR] [--keep DIR]: a command by its roles beside its
whole world.

Rehearses each program twice on phantom GPUs: every rank of a world, and one process for each pipeline stage (docs/rehearsal.md). Prints for each
started rank whether all that the phantoms counted is the same (launches, products, host synchronisations, copies, allocations, collectives by kind
with their bytes, modelled kernel time) and PyTorch's allocated and reserved peaks, as docs/measurements/2026-11-29-roles.md. Exit 1: something
differs. FSDP2, DeepSpeed, Lightning and accelerate are those of this Python; torchtitan and Megatron-LM are run where their repositories are named."""
import argparse
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "tests/e2e/trainers"
ON_A_NODE = 8
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "{nodes}", "--nproc-per-node", "{gpus_per_node}", "--node-rank", "{node}",
          "--master-addr", "{master_addr}", "--master-port", "{master_port}"]
ACCELERATE = [sys.executable, "-m", "accelerate.commands.launch", "--num_machines", "{nodes}", "--num_processes", "{world}",
              "--machine_rank", "{node}", "--main_process_ip", "{master_addr}", "--main_process_port", "{master_port}", "--mixed_precision", "bf16",
              "--use_fsdp", "--fsdp_version", "2", "--fsdp_auto_wrap_policy", "SIZE_BASED_WRAP", "--fsdp_min_num_params", "1000"]
# Megatron-LM's own layers; phantoms compute no losses (examples/megatron/README.md).
MEGATRON = ["--use-mcore-models", "--train-iters", "{total_steps}", "--log-interval", "1", "--tensor-model-parallel-size", "{tp}",
            "--pipeline-model-parallel-size", "{pp}", "--micro-batch-size", "{micro_batch_size}", "--global-batch-size", "{global_batch_size}",
            "--seq-length", "512", "--max-position-embeddings", "512", "--num-layers", "8", "--hidden-size", "512", "--num-attention-heads", "8",
            "--bf16", "--use-distributed-optimizer", "--optimizer", "adam", "--lr", "1e-4", "--swiglu", "--normalization", "RMSNorm",
            "--disable-bias-linear", "--position-embedding-type", "rope", "--untie-embeddings-and-output-weights", "--mock-data",
            "--tokenizer-type", "NullTokenizer", "--vocab-size", "32000", "--split", "1,0,0", "--eval-interval", "1000", "--eval-iters", "0",
            "--transformer-impl", "local", "--no-rope-fusion", "--no-gradient-accumulation-fusion", "--no-persist-layer-norm",
            "--no-masked-softmax-fusion", "--no-check-for-nan-in-loss-and-grad", "--rerun-mode", "disabled"]
TITAN = ["--job.config_file", "./torchtitan/models/llama3/train_configs/debug_model.toml", "--profiling.no-enable-profiling"]
# What one chosen process does, or this machine's clock tells: it is said apart from what differs.
CHOSEN = ("pinned_bytes", "peak_pinned_bytes", "host_ns", "device_ns", "host_work_ns", "busy_ns", "event_queries")
NO_RANK = ("pid", "rank", "device")


def programs(given):
    """Name -> the grid's workload, its base, its layouts."""
    def script(name, *words):
        return {"command": [*LAUNCH, str(SCRIPTS / name), *words], "processes": "per_node"}
    out: dict[str, tuple[dict, dict, list[dict]]] = {
        "fsdp2": (script("world_train.py", "{zero}", "{tp}"), {}, [{"zero": 3, "tp": 2}]),
        "fsdp2 stages": (script("stages_train.py", "{pp}", "{tp}", "{vpp}", "{grad_accum}"), {"zero": 3, "grad_accum": 8},
                         [{"pp": 2, "tp": 2}, {"pp": 4}, {"pp": 2, "schedule": "interleaved", "vpp": 2}]),
        "deepspeed": (script("deepspeed_stages_train.py", "{pp}", "{zero}", "{grad_accum}", "{total_steps}"), {"grad_accum": 8},
                      [{"pp": 4, "zero": 1}, {"zero": 3}]),
        "lightning": (script("lightning_gpu_train.py", "fsdp", "{nodes}", "{gpus_per_node}", "{grad_accum}", "{total_steps}"), {"grad_accum": 2},
                      [{"zero": 3}]),
        "accelerate": ({"command": [*ACCELERATE, str(SCRIPTS / "accelerate_train.py"), "{total_steps}"], "processes": "per_node"}, {}, [{"zero": 3}])}
    if given.torchtitan:
        out["torchtitan"] = ({"recipe": "torchtitan", "folder": str(given.torchtitan.resolve()), "arguments": TITAN,
                              "command": [*LAUNCH, "-m", "sweep_trial", "-m", "torchtitan.train"]},
                             {"zero": 3, "recompute": "none", "seq_len": 2048, "micro_batch_size": 1, "grad_accum": 4},
                             [{"pp": 2, "tp": 2, "sp": True, "schedule": "1f1b"}])
    if given.megatron:
        out["megatron"] = ({"command": [*LAUNCH, "-m", "sweep_trial", str(ROOT / "examples/megatron/mla.py"), *MEGATRON], "processes": "per_node",
                            "env": {"MEGATRON": str(given.megatron.resolve()), "TORCHDYNAMO_DISABLE": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}},
                           {"zero": 1, "grad_accum": 4}, [{"pp": 2, "tp": 2}])
    return {name: of for name, of in out.items() if not given.only or name in given.only}


def rehearse(bin_dir, folder, grid, most):
    """(trial, rank) -> outcome, counters, peaks of each started rank, and the trial's axes."""
    file, db = folder / f"{grid['name']}.yaml", folder / f"{grid['name']}-{most}.db"
    file.write_text(json.dumps(grid, indent=1), encoding="utf-8")
    done = subprocess.run([bin_dir / "sweep", "run", file, "--rehearse", "--rehearse-ranks", str(most), "--yes", "--db", db, "--quiet"],
                          capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if not db.exists():
        sys.exit(f"{grid['name']}: {done.stderr}")
    with sqlite3.connect(db) as connection:
        rows = connection.execute("select r.trial, k.rank, k.peak_allocated_bytes, k.peak_reserved_bytes, json_extract(k.effective, '$.phantom')"
                                  " from results r join trial t on t.id = r.trial join plan_entry p on p.trial = t.key"
                                  " join rank_record k on k.attempt = p.final_attempt where r.outcome = 'ok' order by 1, 2").fetchall()
        failed = connection.execute("select trial, outcome, reason from results where outcome <> 'ok'").fetchall()
    for each in failed:
        print(f"{grid['name']}, {most} ranks: {each}", file=sys.stderr)
    return {row[:2]: (row[2], row[3], json.loads(row[4] or "{}")) for row in rows}, [each[0] for each in failed]


def differing(whole, alone):
    """Counters that are not the same: those that say what a rank does, and those of a chosen process or a clock."""
    keys = sorted(key for key in {*whole, *alone} - {*NO_RANK} if whole.get(key) != alone.get(key))
    return [f"{key} {whole.get(key)} -> {alone.get(key)}" for key in keys if key not in CHOSEN], [key for key in keys if key in CHOSEN]


def compare(given, name, program, world, folder):
    """Prints a row for each layout; whether all are the same."""
    workload, base, layouts = program
    node = min(world, ON_A_NODE)
    same = True
    for layout in layouts:
        grid = {"name": f"{name.replace(' ', '-')}-{world}", "workload": workload, "include": [layout], "measure": {"warmup_steps": 1, "steps": 1},
                "base": {"hardware": "h100-sxm-80gb", "nodes": world // node, "gpus_per_node": node, **base},
                "limits": {"retries_crash": 0, "start_seconds": 3600, "hang_seconds": 1800, "trial_seconds": 7200}}
        there = pathlib.Path(tempfile.mkdtemp(dir=folder))
        (whole, bad), (alone, bad_alone) = (rehearse(given.bin, there, grid, most) for most in (world, 1))
        found, counters, others = [], 0, set()
        for key, (allocated, reserved, counted) in alone.items():
            of_whole = whole.get(key, (None, None, {}))
            differ, chosen = differing(of_whole[2], counted)
            if (allocated, reserved) != of_whole[:2]:
                differ.append(f"allocated, reserved {of_whole[:2]} -> {(allocated, reserved)}")
            found += [f"rank {key[1]}: {each}" for each in differ]
            others |= {*chosen}
            counters = max(counters, len(counted))
        good = bool(alone) and not (bad or bad_alone or found)
        same = same and good
        said = ", ".join(f"{key} {value}" for key, value in layout.items())
        peaks = "; ".join(f"{allocated}, {reserved}" for allocated, reserved, _ in (list(alone.values())[:1] + list(alone.values())[1:][-1:]))
        launches = "; ".join(str(counted.get("launches")) for _, _, counted in (list(alone.values())[:1] + list(alone.values())[1:][-1:]))
        answer = "none" if good else "; ".join(found) or "did not run"
        print(f"| {name} | {world} | {said} | {len(whole)}, {len(alone)} | {answer} | {', '.join(sorted(others)) or '-'} | {launches} | {peaks} |", flush=True)
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--worlds", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--only", nargs="+", help="names of programs")
    parser.add_argument("--torchtitan", type=pathlib.Path, help="its repository")
    parser.add_argument("--megatron", type=pathlib.Path, help="Megatron-LM's repository")
    parser.add_argument("--keep", type=pathlib.Path, help="the folder for grids and databases")
    given = parser.parse_args()
    print("| program | ranks | layout | processes: whole, by roles | counters that differ | differ by a clock or a chosen rank | launches of the first and last started rank | allocated, reserved of both |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as there:
        folder = given.keep or pathlib.Path(there)
        folder.mkdir(parents=True, exist_ok=True)
        same = [compare(given, name, of, world, folder) for world in given.worlds for name, of in programs(given).items()]
    sys.exit(0 if same and all(same) else 1)


if __name__ == "__main__":
    main()
