"""A training script as people have them: PyTorch's DDP, nothing of sweep, a thousand steps."""
import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--lr", type=float, default=3e-4)
args = parser.parse_args()
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Embedding(1000, 64), torch.nn.Linear(64, 1000)))
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
for step in range(1000):
    ids = torch.randint(0, 1000, (args.batch, 64))
    loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0 and step % 100 == 0:
        print("step", step, "loss", loss.item())
dist.destroy_process_group()
