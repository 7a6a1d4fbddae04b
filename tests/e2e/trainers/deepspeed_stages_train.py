"""A network trained on GPUs by DeepSpeed in pipeline stages, or without stages by ZeRO 3.

    deepspeed_stages_train.py STAGES ZERO MICRO_STEPS STEPS"""
import itertools
import os
import sys

import deepspeed
import sweep_trial
import torch
from deepspeed.pipe import PipelineModule

stages, zero, micros, steps = map(int, sys.argv[1:])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
deepspeed.init_distributed("nccl")
settings = {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": micros, "bf16": {"enabled": True},
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}, "zero_optimization": {"stage": zero}}
layers = [torch.nn.Linear(2048, 2048) for _ in range(16)]
model = PipelineModule(layers, num_stages=stages, loss_fn=torch.nn.functional.mse_loss) if stages > 1 else torch.nn.Sequential(*layers)
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
rows = torch.zeros(8, 2048, dtype=torch.bfloat16, device="cuda")
for _ in range(steps):
    if stages > 1:
        engine.train_batch(itertools.repeat((rows, rows)))
    else:
        for _ in range(micros):
            engine.backward(torch.nn.functional.mse_loss(engine(rows), rows))
            engine.step()
    sweep_trial.step()
torch.distributed.destroy_process_group()
