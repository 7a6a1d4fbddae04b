"""A program with PyTorch that goes wrong, or looks so, in one way: zoo_torch.py CASE. Those without it are in zoo.py."""
import os
import sys
import time

import lean
import torch
import torch.distributed as dist

lean.without_compiler()
torch.set_num_threads(1)


def train(rank=0, world=1, wrong=None):
    if world > 1:
        dist.init_process_group("gloo", rank=rank, world_size=world)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(8):
        if wrong and step == 3:
            wrong(rank)
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        if world > 1:
            dist.all_reduce(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
    if world > 1:
        dist.barrier()  # the store is in rank 0, and gloo aborts a peer that still speaks to it
        dist.destroy_process_group()


def sleeps(rank):
    while rank == 1:
        time.sleep(1)  # the others wait in all_reduce


def asks_for_too_much(_):
    torch.empty(1 << 50, dtype=torch.uint8)


def scaled():
    model = torch.nn.Linear(8, 8)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=1e-3), torch.amp.GradScaler("cpu")
    for _ in range(8):
        scaler.scale(model(torch.full((2, 8), float("inf"))).sum()).backward()
        scaler.step(optimizer)  # which it never does
        scaler.update()
        optimizer.zero_grad()


if __name__ == "__main__":
    case = sys.argv[1]
    if case == "hang":
        train(int(os.environ["RANK"]), 2, sleeps)
    elif case == "cpu_oom":
        train(wrong=asks_for_too_much)
    elif case == "scaled":
        scaled()
    elif case == "spawn":
        torch.multiprocessing.spawn(train, (2,), nprocs=2)
