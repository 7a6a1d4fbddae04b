"""A tiny language model trained with plain PyTorch: torch_train.py ddp|fsdp2|single STEPS [--micro-batch N] [--seq N]
[--fault oom|hang|crash] on the rank in FAULT_RANK at step 3."""
import argparse
import os
import time

import lean
import sweep_trial
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("mode", choices=["single", "ddp", "fsdp2"])
parser.add_argument("steps", type=int)
parser.add_argument("--micro-batch", type=int, default=2)
parser.add_argument("--seq", type=int, default=32)
parser.add_argument("--fault", default="")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
rank = int(os.environ.get("RANK", 0))
if args.mode != "fsdp2":
    lean.without_compiler()
if args.mode != "single":
    dist.init_process_group("gloo")


class Model(torch.nn.Module):
    def __init__(self, vocabulary=256, width=64):
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(width, 4, 128, batch_first=True) for _ in range(2))
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, input_ids):
        x = self.table(input_ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Model()
if args.mode == "fsdp2":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
elif args.mode == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
sweep_trial.watch(model, optimizer)
for step in range(args.steps):
    if args.fault and rank == int(os.environ.get("FAULT_RANK", 0)) and step == 3:
        if args.fault == "oom":
            raise MemoryError("as much as there is")
        if args.fault == "hang":
            time.sleep(10_000)  # the other ranks wait in a collective
        raise ValueError("a fault of the script")
    ids = torch.randint(0, 256, (args.micro_batch, args.seq))
    loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
if args.mode != "single":
    dist.destroy_process_group()
