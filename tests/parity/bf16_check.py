#!/usr/bin/env python3
"""Loss and gradient norms of `sweep-rank check --precision bf16` against transformers in bf16, where their roundings differ by family.

usage: bf16_check.py SWEEP_RANK [CASE ...]
Gemma multiplies a norm by 1 + w before it rounds: the norms' weights here are below half a step of bf16 at 1, so that a sum in bf16 would
lose them. DeepSeek's routers score in fp32: the logits here are so large beside their differences that those in bf16 would be ties.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import torch
from hf_check import CASES, COMMON, DEEPSEEK, expected, main
from transformers import AutoModelForCausalLM, DeepseekV2Config, DeepseekV3Config

# One layer without experts and one with them: the scores are of what the first one makes.
EXPERTS = {**COMMON, **DEEPSEEK, "num_hidden_layers": 2, "n_routed_experts": 16, "q_lora_rank": 28, "n_shared_experts": 1}
MODELS = {
    "gemma": CASES["gemma"],
    "gemma3": CASES["gemma3"],
    "deepseek_v2": lambda: DeepseekV2Config(**EXPERTS, num_experts_per_tok=4),
    "deepseek_v3": lambda: DeepseekV3Config(**EXPERTS, num_experts_per_tok=2, n_group=1, topk_group=1),
}
# Mean of the router's weights and their spread: what the logits share, and how far apart they are.
ROUTERS = {"deepseek_v2": (1.0, 0.05), "deepseek_v3": (0.0625, 0.004)}
LOSS, NORMS = 2e-3, 0.05  # relative


def draw(name, p, case):
    """Values of a parameter that show how it is rounded."""
    if case in ROUTERS and name.endswith("mlp.gate.weight"):
        mean, spread = ROUTERS[case]
        return mean + torch.randn_like(p) * spread
    if case in ROUTERS and name.endswith("embed_tokens.weight"):
        return 1 + 0.3 * torch.randn_like(p)
    if case in ROUTERS and ".experts." in name:
        return torch.randn_like(p) * 0.4
    if "norm" in name:
        return 0.0035 + 0 * p if case not in ROUTERS else torch.ones_like(p)
    return torch.randn_like(p) * (1.0 if "embed" in name else 0.05)


def make(case, folder):
    torch.manual_seed(11)
    model = AutoModelForCausalLM.from_config(MODELS[case](), dtype=torch.bfloat16, attn_implementation="eager")
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(draw(name, p, case))
    model.save_pretrained(folder)
    return model.train()


def compare(case, binary):
    with tempfile.TemporaryDirectory() as folder:
        model = make(case, folder)
        tokens = torch.randint(0, model.config.vocab_size, (16, 65), generator=torch.Generator().manual_seed(5)).tolist()
        path = os.path.join(folder, "tokens.json")
        with open(path, "w") as f:
            json.dump(tokens, f)
        loss, norms = expected(model, tokens)
        done = subprocess.run([binary, "check", "--checkpoint", folder, "--tokens", path, "--precision", "bf16"], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"sweep-rank check ended with {done.returncode}: {done.stderr.strip()}"]
    ours = json.loads(done.stdout)
    wrong = [] if math.isclose(ours["loss"], loss, rel_tol=LOSS) else [f"loss {ours['loss']} instead of {loss}"]
    whole = math.sqrt(sum(n * n for n in norms.values()))
    norms = {name: norm for name, norm in norms.items() if ".experts." not in name}  # one token more or less is much of an expert's
    worst = 0.0
    for name, norm in norms.items():
        off = abs(ours["grad_norms"].get(name, float("nan")) - norm) / max(norm, 0.01 * whole)
        worst = max(worst, off)
        if not off <= NORMS:
            wrong.append(f"{name}: {ours['grad_norms'].get(name)} instead of {norm}")
    print(f"{case}: loss {ours['loss']:.6f} ({abs(ours['loss'] - loss) / loss:.1e} off), {len(norms)} gradients, worst {worst:.1e} off", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(MODELS, compare))
