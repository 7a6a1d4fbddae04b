#!/usr/bin/env python3
"""A DDP trainer in plain eager PyTorch, as a competent user writes it: the yardstick for the training step's speed.

A Llama-like decoder (F.rms_norm, rotary positions from cached tables, F.scaled_dot_product_attention with grouped heads, SwiGLU,
cross-entropy), fused AdamW, DistributedDataParallel over gloo with gradients as bucket views, gradient accumulation under
no_sync. One process per rank; rank 0 prints one line of JSON with the median and every timed step.

usage: bench_pytorch.py --ranks 2 --layers 4 --hidden 256 --seq-len 256 --micro-batch-size 2
"""
import argparse
import contextlib
import json
import os
import statistics
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
    return p.parse_args()


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
        q = self.q_proj(x).view(b, s, self.heads, self.dim).transpose(1, 2)
        k = self.k_proj(x).view(b, s, self.kv_heads, self.dim).transpose(1, 2)
        v = self.v_proj(x).view(b, s, self.kv_heads, self.dim).transpose(1, 2)
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
        x = self.embed_tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.lm_head(self.norm(x)).flatten(0, 1), labels.flatten())


def train(rank, a, rendezvous):
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    model = Model(a)
    if a.ranks > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=a.ranks)
        model = DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=a.bucket_mb)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    torch.manual_seed(100 + rank)
    data = torch.randint(0, a.vocab, (a.grad_accum, a.micro_batch_size, a.seq_len + 1))
    samples, warmup, losses = [], [], []
    for step in range(a.warmup + a.steps):
        start = time.perf_counter()
        total = 0.0
        for micro in range(a.grad_accum):
            last = micro + 1 == a.grad_accum
            with contextlib.nullcontext() if last or a.ranks == 1 else model.no_sync():
                loss = model(data[micro, :, :-1], data[micro, :, 1:]) / a.grad_accum
                loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(total))
        (samples if step >= a.warmup else warmup).append((time.perf_counter() - start) * 1e3)
    if rank == 0:
        print(json.dumps({"median_ms": statistics.median(samples), "samples_ms": samples, "loss_first": losses[0],
                          "loss_last": losses[-1], "warmup_samples_ms": warmup, "torch": torch.__version__, "args": vars(a)}))
    if a.ranks > 1:
        dist.destroy_process_group()


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
