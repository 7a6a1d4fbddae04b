"""A script like the examples of transformers: options by HfArgumentParser, without sweep."""
import hf_llama
from transformers import HfArgumentParser, Trainer, TrainingArguments

(settings,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(hf_llama.model(), settings, train_dataset=hf_llama.Tokens()).train()
