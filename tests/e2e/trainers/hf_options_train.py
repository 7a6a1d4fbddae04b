"""A script like the examples of transformers: options by HfArgumentParser, without sweep."""
import torch
from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.set_num_threads(1)


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        ids = torch.randint(0, 128, (32,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids}


(settings,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = LlamaForCausalLM(LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                     num_attention_heads=2, num_key_value_heads=2))
Trainer(model, settings, train_dataset=Tokens()).train()
