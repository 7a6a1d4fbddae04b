"""Options as LightningCLI names them (without jsonargparse, which it needs), without sweep."""
import argparse
import os

import lightning_model

parser = argparse.ArgumentParser()
for name, kind in (("num_nodes", int), ("devices", int), ("accelerator", str), ("strategy", str), ("max_steps", int),
                   ("accumulate_grad_batches", int), ("precision", str), ("gradient_clip_val", float)):
    parser.add_argument(f"--trainer.{name}", type=kind)
for name in ("logger", "enable_checkpointing", "enable_progress_bar"):
    parser.add_argument(f"--trainer.{name}", type=lambda word: word != "false")
parser.add_argument("--data.batch_size", type=int, default=1)
options = vars(parser.parse_args())
trainer = {key.split(".")[1]: value for key, value in options.items() if key.startswith("trainer.") and value is not None}
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
lightning_model.lightning.Trainer(**trainer).fit(lightning_model.Module(), lightning_model.tokens(options["data.batch_size"]))
