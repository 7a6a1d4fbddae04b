"""A GPT-2 of any depth trained by Lightning Fabric with FSDP, as Lightning's own benchmark of 2022 did: fp16 mixed precision, blocks
sharded over all ranks, on request recomputed. Started once for each rank."""
import argparse

import sweep_trial
import torch
import transformers.masking_utils
from lightning.fabric import Fabric
from lightning.fabric.strategies import FSDPStrategy
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.models.gpt2.modeling_gpt2 import GPT2Block

parser = argparse.ArgumentParser()
for name in ("ranks", "layers", "hidden-size", "heads", "vocab-size", "seq-len", "micro-batch-size", "steps"):
    parser.add_argument("--" + name, type=int, required=True)
parser.add_argument("--recompute", choices=["none", "full"], required=True)
parser.add_argument("--optimizer", choices=["plain", "foreach", "fused"], required=True)
o = parser.parse_args()

# transformers looks for packed sequences in the values of the positions; phantom GPUs compute none (docs/phantom.md).
transformers.masking_utils.find_packed_sequence_indices = lambda positions: None
recomputed = {"activation_checkpointing_policy": {GPT2Block}} if o.recompute == "full" else {}
fabric = Fabric(accelerator="cuda", devices=o.ranks, precision="16-mixed",
                strategy=FSDPStrategy(auto_wrap_policy={GPT2Block}, **recomputed))
fabric.launch()
config = GPT2Config(vocab_size=o.vocab_size, n_positions=o.seq_len, n_embd=o.hidden_size, n_layer=o.layers, n_head=o.heads, use_cache=False)
form = {"foreach": o.optimizer == "foreach", "fused": o.optimizer == "fused"}
with fabric.device:
    model = GPT2LMHeadModel(config)
model = fabric.setup_module(model)
optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=1e-4, **form))
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()  # the whole model was on each GPU before it was sharded
sweep_trial.watch(model, optimizer.optimizer)
ids = torch.zeros(o.micro_batch_size, o.seq_len, dtype=torch.long, device=fabric.device)
for _ in range(o.steps):
    loss = model(input_ids=ids, labels=ids).loss
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
