"""A network trained on GPUs in pipeline stages, with FSDP2 and tensor parallelism in each. Stages learn each other's shapes; objects and
values cross them.

    stages_train.py STAGES TP CHUNKS MICRO_STEPS"""
import os
import sys

import sweep_trial
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

pp, tp, chunks, micros = map(int, sys.argv[1:])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", **({"device_id": device} if tp > 1 else {}))  # with a device its groups are split from the world's
world, rank = dist.get_world_size(), dist.get_rank()
block = world // pp
mesh = init_device_mesh("cuda", (pp, block // tp, tp), mesh_dim_names=("pp", "dp", "tp"))
group, stage = mesh["pp"].get_group(), mesh["pp"].get_local_rank()
told = [None] * world
dist.all_gather_object(told, {"stage": stage})
assert told == [{"stage": of // block} for of in range(world)], told


def layers():
    return nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))


def loss(out, target):
    return ((out - target) ** 2).mean()


parts = [nn.Sequential(layers(), layers()).cuda() for _ in range(chunks)]
for part in parts:
    for layer in part:
        if tp > 1:
            parallelize_module(layer, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        if mesh["dp"].size() > 1:
            fully_shard(layer, mesh=mesh["dp"])
stages = [PipelineStage(part, stage + i * pp, pp * chunks, device, group=group) for i, part in enumerate(parts)]
schedule = ScheduleInterleaved1F1B(stages, micros, loss_fn=loss) if chunks > 1 else Schedule1F1B(stages[0], micros, loss_fn=loss)
optimizer = torch.optim.AdamW([p for part in parts for p in part.parameters()], fused=True)
sweep_trial.watch(None, optimizer)
for _ in range(3):
    rows = torch.zeros(64 * micros, 1024, device=device)
    schedule.step(*([rows] if stage == 0 else []), **({"target": rows} if stage == pp - 1 else {}))
    last = torch.full((1,), stage, device=device)
    dist.broadcast(last, group=group, group_src=pp - 1)
    whole = torch.ones(1, dtype=torch.int64, device=device)
    dist.all_reduce(whole)
    assert (last.item(), whole.item()) == (pp - 1, world), (last, whole)
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
