#!/usr/bin/env python3
"""search_on_cpu.py BIN [--repeats 5] [--trials 10] [--calibrate] [--keep FOLDER]: a grid of 216 configurations really run on this machine's CPU, then searches from
scratch: does each find a configuration within 3 % of the best? BIN: the folder of sweep, sweep-agent and sweep-rank, a release build.

Each search runs at most `--trials` configurations, then measures its best three again, interleaved (`sweep confirm`), and takes the first of those.
What the answers are worth is measured at the end, all of them and the grid's best three side by side, in rounds that take turns; the fastest of
all is the best. With `--calibrate` the plan predicts by a profile of this machine that is measured first. Exit code 0: every search was within 3 %.
"""
import argparse
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from typing import Any

NEAR = 0.97
MODEL = "{family: llama, layers: 2, hidden_size: 128, heads: 4, kv_heads: 4, intermediate_size: 344, vocab_size: 1024, tie_embeddings: false}"
AXES: dict[str, list[Any]] = {"micro_batch_size": [1, 2, 4, 8, 16, 32], "recompute": ["none", "full"], "precision": ["fp32", "bf16", "bf16_mixed"],
        "optimizer": ["plain", "foreach", "fused"], "attention": ["math", "flash"]}
GRID = """name: NAME
model: MODEL
base: {hardware: cpu, seq_len: 64}
measure: {warmup_steps: 3, steps: 12}
POINTS
"""
JUDGED_ROUNDS, JUDGED_STEPS = 7, 30


def points(configurations=None):
    if configurations is None:
        return "grid: {" + ", ".join(f"{axis}: [{', '.join(map(str, values))}]" for axis, values in AXES.items()) + "}"
    items = [", ".join(f"{axis}: {value}" for axis, value in zip(AXES, each)) for each in configurations]
    return "include:\n" + "".join(f"  - {{{item}}}\n" for item in items)


class Bench:
    def __init__(self, programs, folder):
        self.sweep, self.folder = programs / "sweep", folder

    def call(self, *words, codes=(0,)):
        done = subprocess.run([str(word) for word in (self.sweep, *words)], stderr=subprocess.PIPE, text=True, check=False, stdout=subprocess.DEVNULL)
        if done.returncode not in codes:
            raise SystemExit(f"sweep {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")

    def run(self, name, text, *more):
        path, db = self.folder / f"{name}.yaml", self.folder / f"{name}.db"
        path.write_text(GRID.replace("NAME", name).replace("MODEL", MODEL).replace("POINTS", text))
        self.call("run", path, "--db", db, "--on", "local", "--slots", 1, "--quiet", *more)

    def confirm(self, name, *more):
        self.call("confirm", name, "--db", self.folder / f"{name}.db", "--slots", 1, "--quiet", *more, codes=(0, 1))

    def rates(self, name, sweep):
        """configuration -> median over the attempts of tokens per second."""
        with sqlite3.connect(self.folder / f"{name}.db") as db:
            rows = db.execute(f"SELECT {', '.join('t.' + axis for axis in AXES)}, r.tokens_per_s_gpu FROM result r JOIN attempt a ON a.id = r.attempt "
                              "JOIN plan_entry p ON p.key = a.entry JOIN trial t ON t.key = p.trial JOIN sweep s ON s.id = p.sweep "
                              "WHERE s.name = ? AND r.outcome = 0 AND r.tokens_per_s_gpu IS NOT NULL", (sweep,)).fetchall()
        found: dict[tuple[Any, ...], list[float]] = {}
        for *configuration, rate in rows:
            found.setdefault(tuple(configuration), []).append(rate)
        return {configuration: statistics.median(rates) for configuration, rates in found.items()}


def best(rates, count=1):
    return sorted(rates, key=rates.get, reverse=True)[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    o = parser.parse_args()
    os.environ.pop("SWEEP_DB", None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = o.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        b = Bench(o.bin, folder)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")  # no profile but our own
        if o.calibrate:
            b.call("calibrate", "--hardware", "cpu", "--ranks", 1, "--only", "machine", "--quiet")
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        b.run("full", points())
        answers = {}
        for number in range(1, o.repeats + 1):
            name = f"search{number}"
            b.run(name, points(), "--strategy", "search", "--max-trials", o.trials)
            b.confirm(name)
            answers[name] = (best(b.rates(name, f"{name}-confirm"))[0], len(b.rates(name, name)))
            print(f"{name}: {answers[name][1]} trials, load {os.getloadavg()[0]:.1f}", flush=True)
        candidates = set(best(b.rates("full", "full"), 3)) | {configuration for configuration, _ in answers.values()}
        b.run("judge", points(sorted(candidates)))
        b.confirm("judge", "--top", len(candidates), "--allocations", JUDGED_ROUNDS, "--steps", JUDGED_STEPS)
        rates = b.rates("judge", "judge-confirm")
        most = max(rates.values())
        print("| search | trials | configuration | of the best |\n|---|---|---|---|")
        for name, (configuration, trials) in answers.items():
            print(f"| {name} | {trials} | {', '.join(map(str, configuration))} | {100 * rates[configuration] / most:.1f} % |")
        within = sum(rates[configuration] >= NEAR * most for configuration, _ in answers.values())
        print(f"{within} of {o.repeats} within {100 * (1 - NEAR):.0f} %; load {os.getloadavg()[0]:.1f}")
        return 0 if within == o.repeats else 1


if __name__ == "__main__":
    sys.exit(main())
