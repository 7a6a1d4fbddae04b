#!/usr/bin/env python3
"""fsdp2_memory.py SWEEP: `sweep predict --profile fsdp2` (and `transformers`) against PyTorch's own FSDP2 memory tracker, as the table of
docs/predict.md. The tracker follows the tensors of a step on fake ones: nothing is computed, any size works on any machine (a row takes up to
a minute). It needs torch and transformers. `fsdp2_memory.py --row JSON` measures one row and prints JSON.
The model is transformers' Llama: as it is for `transformers`; for `fsdp2` its RMSNorm keeps its input and a statistic, as the fused kernel of
GPUs does. Every block, the token table and the head are a unit of FSDP2 each; one rank runs without FSDP2. The tracker does not see an optimizer that works on DTensors rightly, so Adam's state is added:
two numbers for each of this rank's parameters."""
import argparse
import json
import subprocess
import sys
import tempfile
from typing import Any

from predict_accuracy import Tool

SIZES = {"llama3-8b": (128256, 4096, 14336, 32, 32, 8, False), "llama3.2-1b": (128256, 2048, 8192, 16, 32, 8, True),
         "llama2-7b": (32000, 4096, 11008, 32, 32, 32, False), "playbook-1b": (131072, 2048, 8192, 16, 32, 32, True),
         "mistral-7b": (32000, 4096, 14336, 32, 32, 8, False)}
USUAL: dict[str, Any] = {"model": "llama3-8b", "dp": 8, "zero": 3, "precision": "bf16_mixed", "micro_batch_size": 1, "grad_accum": 1, "recompute": "none",
         "seq_len": 4096, "profile": "fsdp2"}
# The first CHOSEN_BY rows chose the facts of the profile `fsdp2`. The others were measured after that.
CHOSEN_BY = 9
ROWS: list[dict[str, Any]] = [{}, {"micro_batch_size": 2}, {"recompute": "full"}, {"micro_batch_size": 2, "recompute": "full"}, {"grad_accum": 2}, {"precision": "bf16"},
        {"model": "llama3.2-1b", "dp": 1, "precision": "bf16"}, {"model": "llama3.2-1b", "dp": 1, "precision": "bf16", "micro_batch_size": 4},
        {"model": "llama3.2-1b", "dp": 1, "precision": "fp32"},
        {"model": "llama2-7b"}, {"model": "llama2-7b", "micro_batch_size": 4, "seq_len": 2048, "dp": 16},
        {"model": "llama2-7b", "recompute": "full", "micro_batch_size": 4}, {"model": "llama2-7b", "recompute": "full", "precision": "bf16"},
        {"model": "mistral-7b", "dp": 32, "seq_len": 8192}, {"model": "mistral-7b", "dp": 16, "grad_accum": 4, "precision": "bf16", "recompute": "full"},
        {"model": "playbook-1b", "dp": 4, "micro_batch_size": 2}, {"model": "playbook-1b", "dp": 8, "zero": 2},
        {"model": "llama3.2-1b", "dp": 64, "micro_batch_size": 8, "recompute": "full"}, {"model": "llama3-8b", "dp": 64, "precision": "fp32", "seq_len": 2048},
        {"model": "llama3-8b", "dp": 8, "zero": 2, "recompute": "full"},
        {"profile": "transformers"}, {"profile": "transformers", "micro_batch_size": 2, "recompute": "full"},
        {"profile": "transformers", "model": "llama2-7b", "dp": 16, "precision": "bf16"}]


def fused_norm(torch):
    class Norm(torch.autograd.Function):  # type: ignore[name-defined,unused-ignore]
        @staticmethod
        def forward(ctx, rows, weight):
            ctx.save_for_backward(rows, weight, rows.new_empty((*rows.shape[:-1], 1), dtype=torch.float32))
            return torch.empty_like(rows)

        @staticmethod
        def backward(ctx, grad):
            return torch.empty_like(grad), torch.empty_like(ctx.saved_tensors[1])

    class Module(torch.nn.Module):  # type: ignore[name-defined,unused-ignore]
        def __init__(self, hidden, eps):
            super().__init__()
            self.weight, self.variance_epsilon = torch.nn.Parameter(torch.ones(hidden)), eps

        def forward(self, rows):
            return Norm.apply(rows, self.weight)

    return Module


def model_of(row, transformers, torch):
    vocab, hidden, wide, layers, heads, kv_heads, tied = SIZES[row["model"]]
    config = transformers.LlamaConfig(
        vocab_size=vocab, hidden_size=hidden, intermediate_size=wide, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv_heads, max_position_embeddings=row["seq_len"], tie_word_embeddings=tied, attn_implementation="sdpa", use_cache=False)
    torch.set_default_dtype(torch.bfloat16 if row["precision"] == "bf16" else torch.float32)
    net = transformers.LlamaForCausalLM(config)
    if row["recompute"] == "full":
        net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        net.train()
    return net


def shard(net, row, mesh, torch):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mixed = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    policy = mixed if row["precision"] == "bf16_mixed" else MixedPrecisionPolicy()
    ends = [] if SIZES[row["model"]][-1] else [net.model.embed_tokens, net.lm_head]
    for part in (*net.model.layers, *ends, net):
        fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=row["zero"] >= 3)


def measure(row):
    """Peak bytes of a step, by what they are."""
    import torch
    import torch.distributed as dist
    import transformers
    import transformers.masking_utils
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None  # it reads values
    if row["profile"] == "fsdp2":
        transformers.models.llama.modeling_llama.LlamaRMSNorm = fused_norm(torch)
    dist.init_process_group("fake", rank=0, world_size=row["dp"], store=FakeStore())
    mesh = init_device_mesh("cpu", (row["dp"],))
    with FakeTensorMode():
        net = model_of(row, transformers, torch)
        if row["dp"] > 1:
            shard(net, row, mesh, torch)
        tokens = torch.zeros(row["micro_batch_size"], row["seq_len"], dtype=torch.long)
        tracker = FSDPMemTracker(net, None) if row["dp"] > 1 else MemTracker()
        if row["dp"] > 1:
            tracker.track_inputs((tokens,))
        else:
            tracker.track_external(net, tokens)
        with tracker:
            for micro in range(row["grad_accum"]):
                if micro > 0:
                    tracker.reset_mod_stats()
                net(input_ids=tokens, labels=tokens).loss.backward()
    parts = {str(kind).rsplit(".", maxsplit=1)[-1].lower(): size for kind, size in tracker.get_tracker_snapshot("peak")[torch.device("cpu")].items()}
    parts["opt"] = 2 * parts.get("sharded_param", parts.get("param", 0))
    parts["total"] += parts["opt"]
    return {kind: size for kind, size in parts.items() if size}


def ask(row):
    done = subprocess.run([sys.executable, __file__, "--row", json.dumps(row)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{row}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def predict(sweep, row):
    cells = {name: value for name, value in row.items() if name != "profile"} | {"gpus": row["dp"]}
    with tempfile.TemporaryDirectory() as folder:
        return float(Tool(sweep, folder).predict([cells], "--profile", row["profile"])[0]["peak_bytes"])


def told(full, row, number, total, predicted):
    """A line of the table."""
    shown = [f"{name} {full[name]}" for name in full if name not in ("profile", "model") and (name in row or name in ("dp", "zero", "precision"))]
    return (f"| {full['profile']}{'' if number < CHOSEN_BY else ' (new)'} | {full['model']}, {', '.join(shown)} | {total / 1e9:.2f} | {predicted / 1e9:.2f} | "
            f"{100 * (predicted / total - 1):+.1f} % |")


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("sweep", nargs="?", help="the sweep program; without it only the tracker's figures are printed")
    words.add_argument("--row", help="measure this row (JSON) and print its parts as JSON")
    words.add_argument("--most-off", type=float, help="exit with 1 if a row is further off than this share")
    asked = words.parse_args()
    if asked.row:
        print(json.dumps(measure(USUAL | json.loads(asked.row))))
        return
    worst = 0.0
    print("| profile | configuration | tracker, GB | predicted, GB | |\n|---|---|---|---|---|")
    for number, row in enumerate(ROWS):
        full = USUAL | row
        total = ask(full)["total"]
        predicted = predict(asked.sweep, full) if asked.sweep else float("nan")
        off = predicted / total - 1
        worst = max(worst, abs(off))
        print(told(full, row, number, total, predicted), flush=True)
    if asked.most_off is not None and worst > asked.most_off:
        sys.exit(f"a row is {100 * worst:.1f} % off")


if __name__ == "__main__":
    main()
