#!/usr/bin/env python3
"""The cost of sweep_trial.watch(): watch_cost.py [--steps N] [--micro-steps N]. CPU time of one step of a model that computes nothing, with and
without it, in turn: its own cost in microseconds. Then a step of the example's Llama on one core, and the cost as a share of it."""
import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO / "python"), str(REPO / "examples" / "transfer")]
results = tempfile.NamedTemporaryFile()
os.environ.update(SWEEP_RESULTS_FILE=results.name, SWEEP_WARMUP_STEPS="1", SWEEP_STEPS="10")
import sweep_trial  # noqa: E402
import torch  # noqa: E402
import train  # noqa: E402


class Nothing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, ids):
        return self.one


def one_step(model, optimizer, ids, micro_steps):
    for _ in range(micro_steps):
        model(ids).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def cpu_of(*step):
    began = time.process_time_ns()
    one_step(*step)
    return (time.process_time_ns() - began) / 1e3


def pair(make, watched):
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    if watched:
        sweep_trial.watch(model, optimizer)
    return model, optimizer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--micro-steps", type=int, default=4)
    o = parser.parse_args()
    torch.set_num_threads(1)
    ids = torch.zeros(4, 128, dtype=torch.long)
    plain, watched = pair(Nothing, False), pair(Nothing, True)
    differences = []
    for _ in range(o.steps):
        without = cpu_of(*plain, ids, o.micro_steps)
        differences.append(cpu_of(*watched, ids, o.micro_steps) - without)
    # The mean, since lines are written now and then by a thread of the module; cut at both ends against other work of the machine.
    kept = sorted(differences)[o.steps // 50:-max(1, o.steps // 50)]
    cost = statistics.fmean(kept)
    shape = argparse.Namespace(layers=4, hidden_size=256, heads=8, kv_heads=8, intermediate_size=688, vocab_size=4096, seq_len=128, recompute="none")
    llama = pair(lambda: train.Llama(shape), False)
    step = statistics.median(cpu_of(*llama, ids, o.micro_steps) for _ in range(12))
    print(f"watch: {cost:.0f} us of CPU time a step of {o.micro_steps} micro-steps")
    print(f"a step of a Llama of 4 x 256 on one core, {o.micro_steps} micro-steps of 4 x 128 tokens: {step / 1e3:.0f} ms; watch is {cost / step:.3%} of it")


if __name__ == "__main__":
    main()
