"""A tiny Llama trained by transformers.Trainer: hf_train.py STEPS"""
import sys

import sweep_trial
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.set_num_threads(1)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        ids = torch.randint(0, 128, (32,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids}


model = LlamaForCausalLM(LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                     num_attention_heads=2, num_key_value_heads=2))
settings = TrainingArguments("out", max_steps=int(sys.argv[1]), per_device_train_batch_size=2, gradient_accumulation_steps=2,
                             report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, logging_steps=1000)
Trainer(model, settings, train_dataset=Tokens(), callbacks=[sweep_trial.huggingface_callback()]).train()
