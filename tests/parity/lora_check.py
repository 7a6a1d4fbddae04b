#!/usr/bin/env python3
"""Loss and adapter gradients of `sweep-rank check` against peft's LoRA on transformers' models.

usage: lora_check.py SWEEP_RANK [CASE ...]
The adapters are the file that peft writes (adapter_model.safetensors). B does not start at zero here, since A would have no
gradients. Loss within 1e-5 (relative), every norm of an adapter's gradient within 1e-4, and no other gradient.
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import torch
from hf_check import CASES as HF
from hf_check import COMMON, answers_of, compare_answer, main, make_checkpoint
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, Qwen2Config

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
LATENTS = ["kv_a_proj_with_mqa", "kv_b_proj", "o_proj"]
GATED = ["gate_proj", "up_proj", "down_proj"]
DENSE = ["--tp 2", "--pp 2", "--dp 2 --zero 3", "--dp 2 --zero 1", "--dp 2 --zero 2", "--tp 2 --sp", "--cp 2", "--tp 4", "--tp 4 --sp",
         "--pp 2 --dp 2 --zero 3", "--tp 2 --pp 2 --dp 2 --zero 2"]
WIDE = {**COMMON, "hidden_size": 128, "intermediate_size": 256}
MODELS = {**HF, "llama_wide": lambda: LlamaConfig(**WIDE, num_key_value_heads=8, tie_word_embeddings=False),
          "qwen2_tied_odd": lambda: Qwen2Config(**{**COMMON, "vocab_size": 157}, num_key_value_heads=8, tie_word_embeddings=True)}
# Model, lora_targets, the modules those are, rank, alpha, and layouts.
CASES = {
    "llama_all": ("llama", "all_linear", ATTENTION + GATED, 8, 16, DENSE),
    "llama_attention": ("llama", "attention", ATTENTION, 4, 32, DENSE),
    "llama_query_value": ("llama", "query_value", ["q_proj", "v_proj"], 3, 16, ["--tp 2", "--tp 2 --sp", "--dp 2 --zero 3"]),
    "llama_mlp": ("llama", "mlp", GATED, 5, 7, ["--tp 2", "--tp 2 --sp", "--pp 2"]),
    "llama3_rope_tied_all": ("llama3_rope_tied", "all_linear", ATTENTION + GATED, 8, 16, ["--pp 2", "--tp 2", "--dp 2 --zero 3"]),
    "mistral_attention": ("mistral", "attention", ATTENTION, 8, 16, ["--tp 4 --sp"]),
    "qwen2_all": ("qwen2", "all_linear", ATTENTION + GATED, 8, 16, ["--tp 2 --sp", "--cp 2 --cp-comm-type all_to_all"]),
    # 157 tokens: padded over ranks; the tied table is on both ends of a pipeline, and frozen on both.
    "qwen2_tied_odd": ("qwen2_tied_odd", "attention", ATTENTION, 3, 16, ["--pp 2", "--tp 2 --pp 2 --dp 2", "--dp 2 --zero 3"]),
    "gemma_all": ("gemma", "all_linear", ATTENTION + GATED, 8, 16, ["--tp 2", "--pp 2"]),
    "gpt2_all": ("gpt2", "all_linear", ["c_attn", "c_proj", "c_fc"], 8, 16, ["--tp 2", "--tp 2 --sp", "--pp 2 --tp 2", "--cp 2"]),
    "deepseek_v2": ("deepseek_v2", "attention", ["q_proj", *LATENTS], 8, 16,
                    ["--tp 2", "--tp 2 --sp", "--dp 2 --ep 2", "--pp 2", "--dp 2 --zero 3", "--cp 2", "--tp 2 --dp 2 --ep 2 --zero 2"]),
    "deepseek_v3": ("deepseek_v3", "attention", ["q_a_proj", "q_b_proj", *LATENTS], 3, 16,
                    ["--tp 2", "--tp 4 --sp", "--dp 2 --ep 2 --zero 3", "--pp 3"]),
    "mixtral_attention": ("mixtral", "attention", ATTENTION, 8, 16,
                          ["--dp 2 --ep 2", "--tp 2 --sp", "--dp 4 --ep 4 --zero 3", "--pp 2 --tp 2 --dp 2 --ep 2"]),
}


if importlib.util.find_spec("bitsandbytes"):  # a base in 4 bits, whose weights it makes of its codes
    from nf4_check import through_codes
    CASES["llama_nf4"] = ("llama_wide", "all_linear", ATTENTION + GATED, 8, 16, ["--tp 2", "--tp 2 --sp", "--pp 2", "--dp 2 --zero 3", "--cp 2"])
# Adapters of other shapes or of no layer are refused: one case for each way to name tensors, all of them with scripts/test --long.
REFUSED = list(CASES) if os.environ.get("SWEEP_LONG") else ["llama_all", "gpt2_all", "deepseek_v3"]


def adapt(model, modules, rank, alpha):
    """peft's adapters beside the modules; those modules by their names."""
    adapted = get_peft_model(model, LoraConfig(r=rank, lora_alpha=alpha, target_modules=modules, lora_dropout=0.0, bias="none"))
    layers = {name.removeprefix("base_model.model."): each for name, each in adapted.named_modules() if hasattr(each, "lora_A")}
    with torch.no_grad():
        for each in layers.values():
            for factor in (each.lora_A, each.lora_B):
                factor["default"].weight.normal_().mul_(0.1)
    return adapted, layers


def compare(case, binary):
    kind, targets, modules, rank, alpha, layouts = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        model = make_checkpoint(MODELS[kind](), folder, shards=False)
        quantized = case.endswith("_nf4")
        adapted, layers = adapt(model, modules, rank, alpha)
        with torch.no_grad():
            for each in layers.values() if quantized else ():
                each.base_layer.weight.copy_(through_codes(each.base_layer.weight.detach()))
        tensors = {f"{name}.{m}.weight": getattr(each, m)["default"].weight for name, each in layers.items() for m in ("lora_A", "lora_B")}
        adapted.save_pretrained(folder)
        ids = torch.randint(0, model.config.vocab_size, (4, 65), generator=torch.Generator().manual_seed(5))
        path = os.path.join(folder, "tokens.json")
        with open(path, "w") as f:
            json.dump(ids.tolist(), f)
        logits = adapted(input_ids=ids[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        norms = {name: t.grad.double().norm().item() for name, t in tensors.items()}
        assert min(norms.values()) > 0, "a gradient of zero would compare with anything"
        lora = f"--lora-rank {rank} --lora-alpha {alpha} --lora-targets {targets}"
        command = [binary, "check", "--checkpoint", folder, "--tokens", path, *lora.split()]
        if quantized:
            command[6:6] = ["--quantize-base", "nf4"]
        other_alpha = f"--lora-alpha {alpha + 1}"
        answers = answers_of(command, ["", *layouts, other_alpha])
        if isinstance(answers, str):
            return [answers]
        wrong = []
        for flags, ours in zip(["", *layouts], answers):
            wrong += compare_answer(case, flags, ours, loss.item(), norms, set(norms))
        if not compare_answer(case, other_alpha, answers[-1], loss.item(), norms, set(norms)):
            wrong.append("another alpha gives the same loss and gradients")
        for flags in (["--lora-rank", str(rank + 1), *lora.split()[2:]], []) if case in REFUSED else ():
            refused = subprocess.run([*command[:6], *flags], capture_output=True, text=True)
            if refused.returncode == 0 or "lora_" not in refused.stderr:
                wrong.append(f"the adapters were taken with {flags}: {refused.returncode} {refused.stderr}")
        return wrong


if __name__ == "__main__":
    sys.exit(main(CASES, compare))
