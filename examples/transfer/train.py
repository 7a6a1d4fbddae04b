"""A small Llama in eager PyTorch, trained with DDP (--zero 0), or FSDP2 that keeps the gathered weights after forward (2) or frees them (3).
Runs on CPU with Gloo, or on GPUs with NCCL. Started once for each rank, with the variables that torchrun sets."""
import argparse
import contextlib
import os

import sweep_trial
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Rotary(torch.nn.Module):
    def __init__(self, width, longest, theta=10000.0):
        super().__init__()
        turns = torch.outer(torch.arange(longest).float(), theta ** (-torch.arange(0, width, 2).float() / width))
        angles = torch.cat([turns, turns], dim=-1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return x * self.cos[:x.shape[-2]] + torch.cat([-b, a], dim=-1) * self.sin[:x.shape[-2]]


class Block(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        self.width = o.hidden_size // o.heads
        self.norm1, self.norm2 = torch.nn.RMSNorm(o.hidden_size), torch.nn.RMSNorm(o.hidden_size)
        self.q = torch.nn.Linear(o.hidden_size, o.heads * self.width, bias=False)
        self.k = torch.nn.Linear(o.hidden_size, o.kv_heads * self.width, bias=False)
        self.v = torch.nn.Linear(o.hidden_size, o.kv_heads * self.width, bias=False)
        self.out = torch.nn.Linear(o.heads * self.width, o.hidden_size, bias=False)
        self.gate = torch.nn.Linear(o.hidden_size, o.intermediate_size, bias=False)
        self.up = torch.nn.Linear(o.hidden_size, o.intermediate_size, bias=False)
        self.down = torch.nn.Linear(o.intermediate_size, o.hidden_size, bias=False)
        self.rotary = Rotary(self.width, o.seq_len)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (-1, self.width)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(self.rotary(q), self.rotary(k), v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(-2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        self.recompute = o.recompute == "full"
        self.table = torch.nn.Embedding(o.vocab_size, o.hidden_size)
        self.blocks = torch.nn.ModuleList(Block(o) for _ in range(o.layers))
        self.norm = torch.nn.RMSNorm(o.hidden_size)
        self.head = torch.nn.Linear(o.hidden_size, o.vocab_size, bias=False)

    def forward(self, ids):
        x = self.table(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x))


def options():
    parser = argparse.ArgumentParser()
    for name in ("layers", "hidden-size", "heads", "kv-heads", "intermediate-size", "vocab-size", "seq-len", "micro-batch-size",
                 "grad-accum", "zero", "steps"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--recompute", choices=["none", "full"], default="none")
    return parser.parse_args()


def split(model, o, device):
    """The model as data-parallel ranks hold it."""
    if o.zero == 0:
        return torch.nn.parallel.DistributedDataParallel(model)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=o.zero == 3)
    return fully_shard(model, mesh=mesh, reshard_after_forward=o.zero == 3)


def main():
    o = options()
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
        torch.set_num_threads(1)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    torch.manual_seed(0)
    with device:
        model = split(Llama(o), o, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    sweep_trial.watch(model, optimizer)
    ids = torch.randint(0, o.vocab_size, (o.micro_batch_size, o.seq_len + 1), device=device)
    for _ in range(o.steps):
        for micro in range(o.grad_accum):
            last = micro == o.grad_accum - 1
            waits = model.no_sync() if o.zero == 0 and not last else contextlib.nullcontext()
            with waits:
                loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())
                (loss / o.grad_accum).backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
