"""A tiny Llama trained by transformers.Trainer: hf_train.py STEPS"""
import sys

import hf_llama
import sweep_trial
from transformers import Trainer, TrainingArguments

settings = TrainingArguments("out", max_steps=int(sys.argv[1]), per_device_train_batch_size=2, gradient_accumulation_steps=2,
                             report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, logging_steps=1000)
Trainer(hf_llama.model(), settings, train_dataset=hf_llama.Tokens(), callbacks=[sweep_trial.huggingface_callback()]).train()
