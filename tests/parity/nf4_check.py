#!/usr/bin/env python3
"""nf4_check.py QUANTIZED_CODES: codes, both scales and the weights made of them beside bitsandbytes' quantize_4bit with compressed statistics.

Every byte is equal, but for the codes of 8 bits: those of the algorithm (the nearest value of its map, as its CUDA kernel and its
default operator find it). bitsandbytes' own loop for processors looks them up in a table, which takes a neighbour that is as near up
to a table's step: such codes, at most one in 200, differ by one.
"""
import pathlib
import subprocess
import sys
import tempfile

import bitsandbytes.functional as reference
import torch


def read(folder, name, dtype):
    return torch.frombuffer(bytearray((folder / name).read_bytes()), dtype=dtype)


def nearest(largest, state):
    """Codes of 8 bits of blocks' largest magnitudes: the nearest of the map."""
    spread = torch.nn.functional.pad(largest - state.offset, (0, -largest.numel() % 256)).reshape(-1, 256)
    scaled = (spread * (1 / state.state2.absmax.clamp(min=1e-38)).unsqueeze(1)).reshape(-1)[: largest.numel()]
    named = state.state2.code
    return torch.bucketize(scaled, (named[:-1] + named[1:]) / 2).to(torch.uint8)


def through_codes(weights):
    """The weights that bitsandbytes makes of their codes."""
    codes, state = reference.quantize_4bit(weights, quant_type="nf4", compress_statistics=True)
    state.absmax = nearest(weights.reshape(-1, 64).abs().amax(1), state)
    return reference.dequantize_4bit(codes, state)


def ask(binary, requests):
    """One process answers all requests (quantized_codes.cpp)."""
    subprocess.run([binary], input="".join(" ".join(map(str, request)) + "\n" for request in requests), text=True, check=True)


def compare(weights, folder):
    """What differs, as sentences."""
    codes, state = reference.quantize_4bit(weights, quant_type="nf4", compress_statistics=True)
    wrong = []
    if not torch.equal(codes.flatten(), read(folder, "codes", torch.uint8)):
        wrong.append("codes")
    if not torch.equal(state.offset.reshape(1), read(folder, "offset", torch.float32)):
        wrong.append("offset")
    if not torch.equal(state.state2.absmax, read(folder, "scales", torch.float32)):
        wrong.append("scales")
    ours = read(folder, "scale_codes", torch.uint8)
    if not torch.equal(nearest(weights.reshape(-1, 64).abs().amax(1), state), ours):
        wrong.append("codes of 8 bits: not the nearest")
    spread = state.state2.absmax.repeat_interleave(256)[: ours.numel()] > 0  # of blocks that are all alike any code is zero
    other = (ours != state.absmax) & spread
    if other.sum() * 200 > ours.numel() or ((ours.int() - state.absmax.int()).abs() > 1)[spread].any():
        wrong.append(f"codes of 8 bits: {other.sum()} of {ours.numel()} are others than bitsandbytes'")
    if not torch.equal(through_codes(weights).flatten(), read(folder, "back", torch.float32)):
        wrong.append("weights made of the codes")
    return wrong


def main():
    torch.manual_seed(11)
    cases = {"normal": torch.randn(256, 1024) * 0.02, "few blocks": torch.randn(3, 64), "uneven": torch.randn(700, 64) * torch.rand(700, 1) ** 4,
             "constant": torch.full((64, 64), 0.5), "zeros among others": torch.randn(64, 256) * (torch.arange(64) % 3 > 0).unsqueeze(1)}
    failed = False
    with tempfile.TemporaryDirectory() as root:
        folders = [pathlib.Path(root, str(i)) for i in range(len(cases))]
        for folder, weights in zip(folders, cases.values()):
            folder.mkdir()
            (folder / "weights").write_bytes(weights.contiguous().numpy().tobytes())
        ask(sys.argv[1], [("nf4", folder / "weights", folder) for folder in folders])
        for folder, (name, weights) in zip(folders, cases.items()):
            wrong = compare(weights.contiguous(), folder)
            print(f"{name}: {', '.join(wrong) or 'equal'}")
            failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
