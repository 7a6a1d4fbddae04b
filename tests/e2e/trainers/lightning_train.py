"""A tiny language model trained by Lightning: lightning_train.py STEPS"""
import os
import sys

import lightning
import sweep_trial
import torch

torch.set_num_threads(1)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Embedding(128, 32), torch.nn.Linear(32, 128))

    def forward(self, ids):
        return self.net(ids)

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self(batch).flatten(0, 1), batch.flatten())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        return torch.randint(0, 128, (32,))


trainer = lightning.Trainer(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp",
                            max_steps=int(sys.argv[1]), accumulate_grad_batches=2, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, callbacks=[sweep_trial.lightning_callback()])
trainer.fit(Module(), torch.utils.data.DataLoader(Tokens(), batch_size=2))
