"""Runs Megatron-LM's pretrain_gpt.py with latent attention without Transformer Engine: its own core attention takes heads of
one size and keeps all scores; PyTorch's takes queries and keys that are longer than values.

    MEGATRON=/path/to/Megatron-LM python -m sweep_trial mla.py ARGUMENTS"""
import os
import runpy
import sys
import typing

import typing_extensions

typing.override = getattr(typing, "override", typing_extensions.override)  # before Python 3.12
sys.path.insert(0, os.environ["MEGATRON"])
import megatron.core.transformer.dot_product_attention as core  # noqa: E402
import torch  # noqa: E402


class Attention(torch.nn.Module):
    """[length, batch, heads, size of a head] of each -> [length, batch, heads x size of a value], causal."""

    def __init__(self, config, layer_number, *more, softmax_scale=None, **options):
        super().__init__()
        self.scale = softmax_scale
        self.current_max_attn_logits = None

    def forward(self, query, key, value, attention_mask, **options):
        heads_first = [each.permute(1, 2, 0, 3) for each in (query, key, value)]
        out = torch.nn.functional.scaled_dot_product_attention(*heads_first, is_causal=True, scale=self.scale)
        return out.permute(2, 0, 1, 3).reshape(*query.shape[:2], -1)


core.DotProductAttention = Attention
sys.argv[0] = os.environ["MEGATRON"] + "/pretrain_gpt.py"
runpy.run_path(sys.argv[0], run_name="__main__")
