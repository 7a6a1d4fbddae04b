#!/usr/bin/env python3
"""eight_bit_check.py QUANTIZED_CODES: updates of 8-bit AdamW beside bitsandbytes' AdamW8bit, each from the state that it left.

Parameters are equal but for the rounding of fp32. So are the scales of blocks, where 1 - beta2 is rounded to fp32 first, as in
bitsandbytes' CUDA kernel (its loop for processors has it in double: 1.3e-5 of the whole). A code here stands for the nearest value
of the map; that loop looks codes up in a table, which is as near up to a table's step.
"""
import pathlib
import sys
import tempfile

import bitsandbytes
import torch
from nf4_check import ask, read

LR, BETAS, EPS, DECAY, BLOCK = 1e-3, (0.9, 0.999), 1e-8, 0.01, 256
MOMENTS = (("mean", "state1", "absmax1", "qmap1"), ("square", "state2", "absmax2", "qmap2"))


def blocks(numbers):
    return torch.nn.functional.pad(numbers, (0, -numbers.numel() % BLOCK)).reshape(-1, BLOCK)


def value(codes, scales, named):
    """What codes stand for, in double."""
    return named.double()[codes.int()] * scales.double().repeat_interleave(BLOCK)[: codes.numel()]


def before(optimizer, parameter):
    """Codes and scales of the state, zeros before the first update."""
    state, n = optimizer.state[parameter], parameter.numel()
    out = {}
    for name, codes, scales, named in MOMENTS:
        zero = 127 if name == "mean" else 0  # the code of zero
        out[name] = state[scales].clone() if state else torch.zeros(-(-n // BLOCK))
        out[name + "_codes"] = state[codes].clone().flatten() if state else torch.full((n,), zero, dtype=torch.uint8)
        out[name + "_map"] = state[named] if state else None
    return out


def moment(state, name, grad):
    """The moment after an update, in double, by factors of fp32."""
    beta = torch.tensor(BETAS[name == "square"], dtype=torch.float32)
    old = value(state[name + "_codes"], state[name], state[name + "_map"]) if state[name + "_map"] is not None else torch.zeros(grad.numel(), dtype=torch.double)
    new = grad.double() if name == "mean" else grad.double() ** 2
    return beta.double() * old + (1 - beta).double() * new


def step(folder, optimizer, parameter, grad):
    """Their update, and the files that ours starts from. Returns the state before, the gradient, the state and the parameter after."""
    state = before(optimizer, parameter)
    for name in ("mean", "square", "mean_codes", "square_codes"):
        (folder / name).write_bytes(state[name].numpy().tobytes())
    (folder / "parameter").write_bytes(parameter.detach().numpy().tobytes())
    (folder / "grad").write_bytes(grad.numpy().tobytes())
    parameter.grad = grad
    optimizer.step()
    after = {key: value.clone() for key, value in optimizer.state[parameter].items() if isinstance(value, torch.Tensor)}
    return state, grad, after, parameter.detach().clone()


def compare(folder, state, grad, theirs, parameter, most):
    """The largest differences between the updates of both sides are noted in `most`."""

    def note(what, number):
        most[what] = max(most.get(what, 0.0), float(number))

    note("parameter", (read(folder, "parameter", torch.float32) - parameter).abs().max() / LR)
    for name, codes, scales, named in MOMENTS:
        ours, scale = read(folder, name + "_codes", torch.uint8), read(folder, name, torch.float32)
        exact, named = moment(state, name, grad), theirs[named].double()
        largest = blocks(exact).abs().amax(1)
        note("scale", ((scale - largest).abs() / largest.clamp(min=1e-30)).max())
        note("scale beside theirs", ((scale - theirs[scales]).abs() / theirs[scales].clamp(min=1e-30)).max())
        each = largest.repeat_interleave(BLOCK)[: exact.numel()]
        there = each > 0  # of a block of zeros any code is zero
        part, ours = (exact / each)[there], ours[there]
        nearest = (part - named[torch.bucketize(part, (named[:-1] + named[1:]) / 2)]).abs()
        note("further than the nearest", ((part - named[ours.int()]).abs() - nearest).max())
        note(f"{name} codes that differ", (ours != theirs[codes].flatten()[there]).double().mean())


def is_equal(name, updates):
    most: dict[str, float] = {}
    for update in updates:
        compare(*update, most)
    wrong = most["parameter"] > 1e-3 or most["scale"] > 1e-6 or most["scale beside theirs"] > 2e-5 or most["further than the nearest"] > 1e-6
    print(f"{name}: {'DIFFERS' if wrong else 'equal'}; " + ", ".join(f"{what} {number:.2g}" for what, number in most.items()))
    return not wrong


def main():
    torch.manual_seed(11)
    spread = 10.0 ** torch.randint(-3, 2, (64 * 256,))
    cases = {"normal": torch.ones(64 * 256), "every size": spread, "uneven": torch.ones(20 * 256 + 17), "blocks of zeros": (torch.arange(64 * 256) // 256 % 3 > 0).float()}
    updates, requests = {}, []
    with tempfile.TemporaryDirectory() as root:
        for name, sizes in cases.items():
            parameter = torch.nn.Parameter(torch.randn(sizes.numel()))
            optimizer = bitsandbytes.optim.AdamW8bit([parameter], lr=LR, betas=BETAS, eps=EPS, weight_decay=DECAY)
            updates[name] = []
            for count in range(1, 6):
                folder = pathlib.Path(root, str(len(requests)))
                folder.mkdir()
                updates[name].append((folder, *step(folder, optimizer, parameter, torch.randn(sizes.numel()) * sizes)))
                requests.append(("adamw8bit", folder, count))
        ask(sys.argv[1], requests)
        sys.exit(not all([is_equal(name, found) for name, found in updates.items()]))


if __name__ == "__main__":
    main()
