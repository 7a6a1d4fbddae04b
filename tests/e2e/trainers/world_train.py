"""A network trained on GPUs by FSDP2 with tensor parallelism (ZERO 3), or by DDP; groups on NCCL and on Gloo, objects that ranks exchange.

    world_train.py ZERO TP"""
import os
import sys

import sweep_trial
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

zero, tp = map(int, sys.argv[1:])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
world = dist.get_world_size()
told = [None] * world
dist.all_gather_object(told, {"dtype": "bf16"})
sums = torch.ones(2)
dist.all_reduce(sums)
assert told[world - 1] == {"dtype": "bf16"}, told
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(4)]).cuda()
if zero == 3:
    mesh = init_device_mesh("cuda", (world // tp, tp), mesh_dim_names=("dp", "tp"))
    for block in model:
        if tp > 1:
            parallelize_module(block, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
else:
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
sweep_trial.watch(model, optimizer)
for _ in range(3):
    model(torch.zeros(256, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
