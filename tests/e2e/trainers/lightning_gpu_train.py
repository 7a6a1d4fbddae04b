"""A network trained on GPUs by Lightning's Trainer: lightning_gpu_train.py ddp|fsdp NODES DEVICES MICRO_STEPS STEPS"""
import sys

import lightning
import sweep_trial
import torch
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy

nodes, devices, micros, steps = map(int, sys.argv[2:])


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(16)])

    def training_step(self, batch, index):
        return self.net(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), fused=True)


strategy = FSDPStrategy(auto_wrap_policy={torch.nn.Linear}) if sys.argv[1] == "fsdp" else DDPStrategy()
trainer = lightning.Trainer(accelerator="gpu", devices=devices, num_nodes=nodes, strategy=strategy, precision="bf16-true",
                            max_steps=steps, accumulate_grad_batches=micros, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, callbacks=[sweep_trial.lightning_callback()])
trainer.fit(Module(), torch.utils.data.DataLoader(torch.zeros(1, 2048).expand(1 << 16, -1), batch_size=8))
