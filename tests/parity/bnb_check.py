#!/usr/bin/env python3
"""Checkpoints that bitsandbytes saved in NF4 with double quantization, read by `sweep-rank check` and by quantized_codes.

usage: bnb_check.py SWEEP_RANK QUANTIZED_CODES
Codes and scales of every tensor are the file's, bit by bit, and so are the weights made of them. Loss (1e-5) and gradient norms (1e-4)
are those of transformers with these weights, of the whole model and of peft's adapters beside them (--quantize-base nf4 takes the codes
as they are). What is no such file is refused with the tensor's name.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import bitsandbytes as bnb
import bitsandbytes.functional as reference
import torch
from hf_check import compare_layouts, expected
from lora_check import ATTENTION, GATED, WIDE, adapt
from nf4_check import ask, read
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig

LINEAR = (*ATTENTION, *GATED)
STATE = ".quant_state.bitsandbytes__nf4"


def quantized(name, weight):
    """The tensors that bitsandbytes saves of a weight, and the weight that it makes of them, in the weight's type."""
    kept = bnb.nn.Linear4bit(weight.shape[1], weight.shape[0], bias=False, quant_type="nf4", compress_statistics=True)
    kept.weight = bnb.nn.Params4bit(weight.clone(), requires_grad=False, quant_type="nf4", compress_statistics=True)
    kept = kept.to("cpu")
    tensors = {f"{name}{key.removeprefix('weight')}": value.contiguous() for key, value in kept.state_dict().items()}
    return tensors, reference.dequantize_4bit(kept.weight.data, kept.weight.quant_state)


def make(folder, dtype):
    """A checkpoint whose linear layers were quantized from this type, and the model that computes with them in fp32."""
    torch.manual_seed(11)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**WIDE, num_key_value_heads=8, tie_word_embeddings=False), dtype=torch.float32,
                                             attn_implementation="eager")
    model.config.save_pretrained(folder)
    tensors, weights = {}, {}
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.add_(torch.randn_like(p) * 0.05)
            if not any(f".{module}.weight" in name for module in LINEAR):
                tensors[name] = p.detach().clone()
                continue
            saved, weights[name] = quantized(name, p.detach().to(dtype))
            tensors |= saved
            p.copy_(weights[name])
    save_file(tensors, os.path.join(folder, "model.safetensors"))
    return model.train(), tensors, weights


def compare_codes(binary, folder, tensors, weights):
    wrong = []
    with tempfile.TemporaryDirectory() as root:
        for name in weights:
            pathlib.Path(root, name).mkdir()
        ask(binary, [("read", folder, name, *weight.shape, pathlib.Path(root, name)) for name, weight in weights.items()])
        for name, weight in weights.items():
            out = pathlib.Path(root, name)
            state = json.loads(bytes(tensors[name + STATE].tolist()))
            for what, kept, dtype in (("codes", tensors[name].flatten(), torch.uint8), ("scale_codes", tensors[name + ".absmax"], torch.uint8),
                                      ("scales", tensors[name + ".nested_absmax"], torch.float32),
                                      ("offset", torch.tensor([state["nested_offset"]]), torch.float32),
                                      ("back", weight.float().flatten(), torch.float32)):
                if not torch.equal(read(out, what, dtype), kept):
                    wrong.append(f"{name}: {what}")
    print(f"codes and scales of {len(weights)} tensors: {len(wrong)} differ", flush=True)
    return wrong


def compare_model(binary, folder, dtype):
    model, tensors, weights = make(folder, dtype)
    ids = torch.randint(0, model.config.vocab_size, (4, 65), generator=torch.Generator().manual_seed(5))
    path = os.path.join(folder, "tokens.json")
    pathlib.Path(path).write_text(json.dumps(ids.tolist()))
    loss, norms = expected(model, ids.tolist())
    command = [binary, "check", "--checkpoint", folder, "--tokens", path]
    wrong = compare_layouts(f"{dtype}", command, ["", "--tp 2 --sp", "--dp 2 --zero 3"], loss, norms, set(norms))
    if dtype != torch.float32:  # a quantized base makes its weights in the type of the computation
        return wrong, tensors, weights
    adapted, layers = adapt(model, list(LINEAR), 8, 16)
    adapted.save_pretrained(folder)
    logits = adapted(input_ids=ids[:, :-1], use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    norms = {f"{name}.{m}.weight": getattr(each, m)["default"].weight.grad.double().norm().item() for name, each in layers.items()
             for m in ("lora_A", "lora_B")}
    command += "--lora-rank 8 --lora-alpha 16 --lora-targets all_linear --quantize-base nf4".split()
    wrong += compare_layouts("adapters", command, ["", "--tp 2", "--dp 2 --zero 3", "--pp 2"], loss.item(), norms, set(norms))
    os.remove(os.path.join(folder, "adapter_model.safetensors"))
    return wrong, tensors, weights


def compare_refusals(binary, folder, tensors):
    """Each change of one weight's tensors is refused with the name of what is wrong."""
    name = "model.layers.1.mlp.up_proj.weight"

    def state(**changes):
        told = json.loads(bytes(tensors[name + STATE].tolist())) | changes
        return {name + STATE: torch.tensor(list(json.dumps(told).encode()), dtype=torch.uint8)}

    cases = {"another type": state(quant_type="fp4"), "another block": state(blocksize=128), "not nested": state(nested_blocksize=None),
             "another shape": state(shape=[128, 128]), "no shape": state(shape="x"), "a negative size": state(shape=[-64, -512]),
             "of integers": state(dtype="int8"), "no JSON": {name + STATE: torch.zeros(9, dtype=torch.uint8)},
             "short scales": {name + ".nested_absmax": torch.zeros(1)}, "no scales": {name + ".nested_absmax": None},
             "another map": {name + ".quant_map": torch.linspace(-1, 1, 16)}, "no codes": {name: None}}
    wrong = []
    for case, changed in cases.items():
        save_file({key: value for key, value in (tensors | changed).items() if value is not None}, os.path.join(folder, "model.safetensors"))
        done = subprocess.run([binary, "check", "--checkpoint", folder, "--tokens", os.path.join(folder, "tokens.json")], capture_output=True,
                              text=True)
        if done.returncode != 2 or name not in done.stderr:
            wrong.append(f"{case}: {done.returncode} {done.stderr.strip()}")
    return wrong


def main(rank, codes):
    torch.set_num_threads(1)
    wrong = []
    for dtype in (torch.float32, torch.bfloat16):
        with tempfile.TemporaryDirectory() as folder:
            different, tensors, weights = compare_model(rank, folder, dtype)
            assert load_file(os.path.join(folder, "model.safetensors")).keys() == tensors.keys()
            wrong += different + compare_codes(codes, folder, tensors, weights)
            if dtype == torch.float32:  # no refusal looks at the type
                wrong += compare_refusals(rank, folder, tensors)
    for sentence in wrong:
        print(f"FAILED {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
