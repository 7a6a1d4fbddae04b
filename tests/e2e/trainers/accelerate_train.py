"""A network trained on GPUs by accelerate, as its launcher says: accelerate_train.py STEPS"""
import sys

import sweep_trial
import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(16)])
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), fused=True))
assert accelerator.mixed_precision == "bf16", accelerator.mixed_precision  # the launcher said so
sweep_trial.watch(model, optimizer.optimizer)
rows = torch.zeros(64, 2048, device=accelerator.device)
for _ in range(int(sys.argv[1])):
    accelerator.backward(model(rows).float().square().mean())
    optimizer.step()
    optimizer.zero_grad()
torch.distributed.destroy_process_group()
