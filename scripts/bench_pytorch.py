#!/usr/bin/env python3
"""A trainer in plain eager PyTorch, as a competent user writes it: the yardstick for the training step's speed.

A Llama-like decoder (F.rms_norm, rotary positions from cached tables, F.scaled_dot_product_attention with grouped heads, SwiGLU,
cross-entropy), fused AdamW, over gloo, or NCCL with --device cuda; how it is spread over the ranks is --parallel:
  ddp   DistributedDataParallel with gradients as bucket views
  fsdp  fully_shard (FSDP2) of embedding, each block, norm with head, and the root, as torchtitan groups them
  tp    parallelize_module: column- and row-parallel linear layers, vocabulary-parallel embedding, head and loss
  none  one rank, nothing around the blocks
--precision bf16_mixed: with fsdp parameters gathered and products computed in bf16, gradients reduced and weights kept in fp32; with
none autocast, weights kept in fp32.
--compile compiles each block, as torchtitan does.
One process per rank; rank 0 prints one line of JSON with the median, every timed step, and the first and last loss over all ranks.
--dump DIR leaves the initial weights as a Hugging Face checkpoint, and the first micro-batches of all ranks as tokens.json, so that
another implementation can be asked for its loss.

usage: bench_pytorch.py --parallel fsdp --ranks 2 --layers 4 --hidden 256 --seq-len 256 --micro-batch-size 2
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(ranks=1, threads=1, layers=4, hidden=256, heads=4, kv_heads=4, intermediate=688, vocab=8192,
                              seq_len=256, micro_batch_size=2, grad_accum=1, warmup=3, steps=20, bucket_mb=25).items():
        p.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    p.add_argument("--parallel", choices=("ddp", "fsdp", "tp", "none"), default="ddp")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--precision", choices=("fp32", "bf16_mixed"), default="fp32")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--dump")
    a = p.parse_args()
    if a.parallel == "none" and a.ranks > 1:
        p.error("--parallel none is for one rank")
    return a


class Attention(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads, self.kv_heads, self.dim = a.heads, a.kv_heads, a.hidden // a.heads
        self.q_proj = nn.Linear(a.hidden, a.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(a.hidden, a.kv_heads * self.dim, bias=False)
        self.v_proj = nn.Linear(a.hidden, a.kv_heads * self.dim, bias=False)
        self.o_proj = nn.Linear(a.heads * self.dim, a.hidden, bias=False)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        q, k, v = (proj(x).view(b, s, -1, self.dim).transpose(1, 2) for proj in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        return self.o_proj(y.transpose(1, 2).reshape(b, s, -1))


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


class Block(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(a.hidden, eps=1e-5)
        self.self_attn = Attention(a)
        self.post_attention_layernorm = nn.RMSNorm(a.hidden, eps=1e-5)
        self.gate_proj = nn.Linear(a.hidden, a.intermediate, bias=False)
        self.up_proj = nn.Linear(a.hidden, a.intermediate, bias=False)
        self.down_proj = nn.Linear(a.intermediate, a.hidden, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Model(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.autocast = a.parallel == "none" and a.precision == "bf16_mixed"
        self.embed_tokens = nn.Embedding(a.vocab, a.hidden)
        self.blocks = nn.ModuleList(Block(a) for _ in range(a.layers))
        self.norm = nn.RMSNorm(a.hidden, eps=1e-5)
        self.lm_head = nn.Linear(a.hidden, a.vocab, bias=False)
        dim = a.hidden // a.heads
        angle = torch.outer(torch.arange(a.seq_len).float(), 1.0 / 10000.0 ** (torch.arange(0, dim, 2).float() / dim))
        angle = torch.cat((angle, angle), dim=-1)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=self.autocast):
            return self.loss(tokens, labels)

    def loss(self, tokens, labels):
        x = self.embed_tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.lm_head(self.norm(x)).flatten(0, 1).float(), labels.flatten())


HUGGING_FACE = {"embed_tokens": "model.embed_tokens", "norm": "model.norm", "lm_head": "lm_head"}


def dump(model, batches, a):
    """The plain model's weights under the names of a Hugging Face Llama, its config, and every rank's first tokens."""
    from safetensors.torch import save_file

    def name(key):
        module, rest = key.split(".", 1)
        if module != "blocks":
            return HUGGING_FACE[module] + "." + rest
        layer, rest = rest.split(".", 1)
        return f"model.layers.{layer}.{'mlp.' if rest.split('_')[0] in ('gate', 'up', 'down') else ''}{rest}"
    folder = pathlib.Path(a.dump)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name(key): value.detach() for key, value in model.named_parameters()}, folder / "model.safetensors")
    config = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=a.hidden, num_hidden_layers=a.layers,
                  num_attention_heads=a.heads, num_key_value_heads=a.kv_heads, intermediate_size=a.intermediate, vocab_size=a.vocab,
                  max_position_embeddings=a.seq_len, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False,
                  hidden_act="silu", torch_dtype="float32")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokens.json").write_text(json.dumps([row for batch in batches for row in batch[0].tolist()]))


def sharded(model, mesh, a):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    mixed = dict(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if a.precision == "bf16_mixed" else {}
    how = dict(mesh=mesh, mp_policy=MixedPrecisionPolicy(**mixed))
    fully_shard(model.embed_tokens, **how)
    for block in model.blocks:
        if a.compile:
            block.compile()
        fully_shard(block, **how)
    fully_shard([model.norm, model.lm_head], reshard_after_forward=False, **how)  # backward needs them at once
    return fully_shard(model, **how)


def tensor_parallel(model, mesh):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    parallelize_module(model, mesh, {"embed_tokens": RowwiseParallel(input_layouts=Replicate()),
                                     "lm_head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)})
    column, row = ColwiseParallel, RowwiseParallel
    plan = {"self_attn.q_proj": column(), "self_attn.k_proj": column(), "self_attn.v_proj": column(), "self_attn.o_proj": row(),
            "gate_proj": column(), "up_proj": column(), "down_proj": row()}
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    return model


def spread(model, a):
    """The model over all ranks, and what the loss and its backward run under."""
    if a.parallel == "ddp":
        return DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=a.bucket_mb), contextlib.nullcontext
    mesh = dist.device_mesh.init_device_mesh(a.device, (a.ranks,))
    if a.parallel == "fsdp":
        return sharded(model, mesh, a), contextlib.nullcontext
    from torch.distributed.tensor.parallel import loss_parallel
    return tensor_parallel(model, mesh), loss_parallel


def groups_of_one_kind(model):
    """Plain and distributed parameters apart: one fused update takes one kind (under tp the norms are plain)."""
    groups: dict[type, list] = {}
    for p in model.parameters():
        groups.setdefault(type(p.data), []).append(p)
    return [{"params": params} for params in groups.values()]


def tokens_of(a, rank):
    generator = torch.Generator().manual_seed(100 + rank)
    return torch.randint(0, a.vocab, (a.grad_accum, a.micro_batch_size, a.seq_len + 1), generator=generator)


def is_spread(a):
    """One rank on a GPU is sharded too: FSDP2 casts its parameters as it does on several."""
    return a.parallel != "none" and (a.ranks > 1 or a.device == "cuda")


def gradients_stay(model, a, last):
    """Under accumulation only the last micro-batch's backward exchanges gradients."""
    if not is_spread(a) or a.parallel == "tp":
        return contextlib.nullcontext()
    if a.parallel == "fsdp":
        model.set_requires_gradient_sync(last)
        return contextlib.nullcontext()
    return contextlib.nullcontext() if last else model.no_sync()


def mean_over_ranks(losses, a):
    values = torch.tensor(losses, dtype=torch.float64, device=a.device)
    if a.ranks > 1 and a.parallel != "tp":
        dist.all_reduce(values)
        values /= a.ranks
    return values.tolist()


def join(rank, a, rendezvous):
    if a.device == "cuda":
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", init_method=rendezvous, rank=rank, world_size=a.ranks, device_id=torch.device("cuda", rank))
    else:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=a.ranks)


def train(rank, a, rendezvous):
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    if is_spread(a):
        join(rank, a, rendezvous)
    with torch.device(a.device):
        model, context = Model(a), contextlib.nullcontext
    if a.dump and rank == 0:
        dump(model, [tokens_of(a, other) for other in range(1 if a.parallel == "tp" else a.ranks)], a)
    if is_spread(a):
        model, context = spread(model, a)
    elif a.compile:
        for block in model.blocks:
            block.compile()
    optimizer = torch.optim.AdamW(groups_of_one_kind(model), lr=1e-3, fused=True)
    data = tokens_of(a, 0 if a.parallel == "tp" else rank).to(a.device)
    samples: list[float] = []
    warmup: list[float] = []
    losses: list[float] = []
    for step in range(a.warmup + a.steps):
        start = time.perf_counter()
        total = 0.0
        for micro in range(a.grad_accum):
            with gradients_stay(model, a, micro + 1 == a.grad_accum), context():
                loss = model(data[micro, :, :-1], data[micro, :, 1:]) / a.grad_accum
                loss.backward()
            total += float(loss.detach())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if a.device == "cuda":
            torch.cuda.synchronize()
        losses.append(total)
        (samples if step >= a.warmup else warmup).append((time.perf_counter() - start) * 1e3)
    losses = mean_over_ranks(losses, a)
    if rank == 0:
        print(json.dumps({"median_ms": statistics.median(samples), "samples_ms": samples, "loss_first": losses[0],
                          "loss_last": losses[-1], "warmup_samples_ms": warmup, "torch": torch.__version__, "args": vars(a),
                          "peak_allocated_bytes": torch.cuda.max_memory_allocated() if a.device == "cuda" else None}))
    if is_spread(a):
        dist.destroy_process_group()
        sys.stdout.flush()
        os._exit(0)  # PyTorch 2.11 with gloo aborts now and then in the interpreter's end (`terminate called`): its threads still run


def main():
    a = parse()
    if "WORLD_SIZE" in os.environ:  # started by torchrun
        a.ranks = int(os.environ["WORLD_SIZE"])
        return train(int(os.environ["RANK"]), a, "env://")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        rendezvous = "file://" + os.path.join(folder, "store")
        if a.ranks == 1:
            train(0, a, rendezvous)
        else:
            mp.spawn(train, (a, rendezvous), nprocs=a.ranks)


if __name__ == "__main__":
    main()
