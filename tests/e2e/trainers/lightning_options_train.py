"""Options as LightningCLI names them (without jsonargparse, which it needs), without sweep."""
import argparse
import os

import lightning
import torch

torch.set_num_threads(1)
parser = argparse.ArgumentParser()
for name, kind in (("num_nodes", int), ("devices", int), ("accelerator", str), ("strategy", str), ("max_steps", int),
                   ("accumulate_grad_batches", int), ("precision", str), ("gradient_clip_val", float)):
    parser.add_argument(f"--trainer.{name}", type=kind)
for name in ("logger", "enable_checkpointing", "enable_progress_bar"):
    parser.add_argument(f"--trainer.{name}", type=lambda word: word != "false")
parser.add_argument("--data.batch_size", type=int, default=1)
options = vars(parser.parse_args())
trainer = {key.split(".")[1]: value for key, value in options.items() if key.startswith("trainer.") and value is not None}


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Embedding(128, 32), torch.nn.Linear(32, 128))

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.net(batch).flatten(0, 1), batch.flatten())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        return torch.randint(0, 128, (32,))


os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
lightning.Trainer(**trainer).fit(Module(), torch.utils.data.DataLoader(Tokens(), batch_size=options["data.batch_size"]))
