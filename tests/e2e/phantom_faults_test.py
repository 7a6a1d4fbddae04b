#!/usr/bin/env python3
"""phantom_faults_test.py BIN_DIR [--faults N] [--seed N]: faults by instruction (docs/phantom.md) in rehearsals. Each ends with the
outcome, phase, part and blamed rank of the table below, and leaves nothing behind.

Where a fault strikes is drawn from what the same layout does without faults: the n-th call of rank r in the build, in the first step, in
the warm-up or in a later step. Without --faults a fixed set runs, every kind once."""
import argparse
import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import database
import processes
from cluster import proc

GRID = """name: faults
model: {{family: llama, layers: 4, hidden_size: 256, heads: 4, kv_heads: 4, intermediate_size: 704, vocab_size: 1024}}
base: {{hardware: h100-sxm-80gb, gpus_per_node: 4, seq_len: 128, precision: bf16_mixed, global_batch_size: 8, micro_batch_size: 1}}
grid: {layout}
limits: {{hang_seconds: 25, retries_crash: 0, retries_infra: 0}}
"""
LAYOUTS = {"dp": "{dp: [4]}", "zero3": "{dp: [4], zero: [3]}", "tp": "{tp: [4]}", "pp": "{pp: [4]}", "tp2pp2": "{tp: [2], pp: [2]}"}
RANKS, STEPS_AFTER_THE_FIRST = 4, 3  # a rehearsal: two steps of warm-up, the first of them `first_step`, and two more
COLUMNS = "outcome", "oom_kind", "phase", "oom_part", "oom_asked_bytes", "cause_rank", "step_ms", "reason"

# The events that a kind of fault counts; the outcome; who is blamed; and where it can happen. "step" is any step.
Expected = collections.namedtuple("Expected", "counts outcome blamed phases")
STEPS = "first_step", "warmup", "step"
EXPECTED = {
    "malloc_oom": Expected("mallocs", "oom", "struck", ["build", "first_step"]),
    "cublas_oom": Expected("matmuls", "oom", "struck", STEPS),
    "nccl_oom": Expected("communicators", "oom", "struck", ["init"]),
    "launch_failure": Expected("kernels", "crash", "struck", ["build", *STEPS]),
    "nccl_error": Expected("operations", "crash", "struck", STEPS),
    "hang": Expected("operations", "hang", None, STEPS),  # the hosts of all ranks look alike: no rank is blamed
    "host_hang": Expected("operations", "hang", "struck", STEPS),
    "xid": Expected("kernels", "node_lost", "struck", ["build", *STEPS]),
    "slow_gpu": Expected(None, "ok", None, ["done"]),
    "slow_link": Expected(None, "ok", None, ["done"]),
}
FIXED = [("malloc_oom", "zero3", 1, "build"), ("cublas_oom", "tp", 2, "step"), ("nccl_oom", "dp", 3, "init"),
         ("launch_failure", "pp", 0, "warmup"), ("nccl_error", "zero3", 1, "first_step"), ("hang", "pp", 3, "first_step"),
         ("host_hang", "tp2pp2", 2, "step"), ("xid", "dp", 1, "step"), ("slow_gpu", "tp", 3, "done"), ("slow_link", "dp", 0, "done")]
PARTS = {"init": {"communication"}, "build": {"build"}}
OF_A_STEP = {"forward", "backward", "optimizer", "communication"}

Ended = collections.namedtuple("Ended", "row records logs left words")


def rehearse(bin_dir, layout, faults):
    """The trial's row, its ranks' records, their logs, and what was left behind."""
    with tempfile.TemporaryDirectory(prefix="sweep-faults-") as folder:
        folder = pathlib.Path(folder)
        grid, db = folder / "grid.yaml", folder / "grid.db"
        grid.write_text(GRID.format(layout=LAYOUTS[layout]))
        environment = {**os.environ, "SWEEP_SITE": str(folder / "none"), "OMP_NUM_THREADS": "1", "SWEEP_FAULTS_TEST": folder.name}
        done = subprocess.run([bin_dir / "sweep", "run", grid, "--rehearse", "--db", db], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=500, env={**environment, **({"SWEEP_PHANTOM_FAULTS": faults} if faults else {})})
        words = done.stdout + done.stderr
        database.check(db)
        rows = database.rows(db, f"select {', '.join(COLUMNS)} from results")
        records = {rank: json.loads(effective) if effective else {}
                   for rank, effective in database.rows(db, "select rank, effective from rank_record")}
        logs = {int(log.stem.removeprefix("rank_")): log.read_text(errors="replace") for log in folder.glob("*.spool/*/attempts/*/rank_*.log")}
        return Ended(dict(zip(COLUMNS, rows[0])) if rows else {}, records, logs, processes_of(folder.name), words)


def processes_of(mark):
    """Processes that carry the mark in their environment. Ending ones have a moment to go."""
    def alive():
        return [f"{pid} {proc.content(pid, 'comm').decode().strip()}" for pid in proc.pids() if mark.encode() in proc.content(pid, "environ")]
    with contextlib.suppress(TimeoutError):
        processes.wait_for(lambda: not alive(), 60, "no process left")
    return alive()


def folders_left():
    """Folders that phantom GPUs of ended rehearsals shared: a running one holds the lock of its folder."""
    out = []
    for folder in pathlib.Path("/dev/shm").glob(f"sweep-rehearsal-{os.geteuid()}-*"):
        try:
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue  # gone since
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.exists():
                out.append(str(folder))
        except BlockingIOError:
            pass
        finally:
            os.close(held)
    return out


class Counts:
    """How often each rank of a layout does what faults count, at the end of each phase."""

    def __init__(self, ended):
        self.step_ms = ended.row["step_ms"]
        self.ends = {rank: self.of(record["phantom"]) for rank, record in ended.records.items()}

    @staticmethod
    def of(phantom):
        def numbers(counters):
            operations = sum(kind["count"] for kind in counters["collectives"].values())
            return {"mallocs": counters["mallocs"], "matmuls": counters["matmuls"], "operations": operations,
                    "kernels": counters["launches"] - operations}
        build, step, total = (numbers(phantom[key] if key else phantom) for key in ("build", "step", None))
        out = {}
        for what, each in step.items():
            first = total[what] - STEPS_AFTER_THE_FIRST * each
            out[what] = {"build": (0, build[what]), "first_step": (build[what], first), "warmup": (first, first + each),
                         "step": (first + each, total[what])}
        out["communicators"] = {"init": (0, 1)}
        return out

    def draw(self, dice, what, rank, phase):
        """A number in the phase, not at its edge; None: the rank does no such thing there."""
        begin, end = self.ends[rank][what][phase]
        if what not in ("kernels",):
            return dice.randint(begin + 1, end) if end > begin else None
        edge = (end - begin) // 5  # messages that are sent as one count once
        return dice.randint(begin + 1 + edge, end - edge) if end - begin > 10 else None


class Fault:
    def __init__(self, counts, dice, kind, layout, rank, phase):
        self.kind, self.layout, self.rank, self.phase, self.expected = kind, layout, rank, phase, EXPECTED[kind]
        self.plain = counts[layout]
        self.at = self.plain.draw(dice, self.expected.counts, rank, phase) if self.expected.counts else 0
        self.text = f"{kind}:rank={rank}" + (f":at={self.at}" if self.at else ":factor=8")

    def deviations(self, ended):
        """The differences from the table; empty: none."""
        row, out = ended.row, []
        struck = self.rank if self.expected.blamed else None
        phase = "done" if self.expected.outcome == "ok" else self.phase
        for column, wanted in (("outcome", self.expected.outcome), ("cause_rank", struck), ("phase", phase)):
            if row.get(column) != wanted:
                out.append(f"{column} is {row.get(column)}, not {wanted}")
        if self.expected.outcome == "oom" and (row.get("oom_kind") != "device" or row.get("oom_part") not in self.parts()):
            out.append(f"oom of {row.get('oom_kind')} in {row.get('oom_part')}, not of device in {'/'.join(sorted(self.parts()))}")
        if self.kind == "malloc_oom" and not row.get("oom_asked_bytes"):
            out.append("the size that was asked for is missing")
        if self.kind.startswith("slow_") and not (row.get("step_ms") or 0) > self.plain.step_ms:
            out.append(f"a step of {row.get('step_ms')} ms is not slower than {self.plain.step_ms}")
        if self.kind == "xid" and f"(rank {self.rank}) reported Xid 79" not in (row.get("reason") or ""):
            out.append("the reason does not name the GPU and its Xid")
        return out + [f"left behind: {left}" for left in ended.left]

    def parts(self):
        if self.kind == "cublas_oom":
            return self.part_of_the_product()
        return PARTS.get(self.phase, OF_A_STEP)

    def part_of_the_product(self):
        """Without stages every micro-batch makes its products in turn: a third forward, two thirds backward."""
        if "pp" in self.layout:
            return {"forward", "backward"}
        begin, end = self.plain.ends[self.rank]["matmuls"]["warmup"]
        micro_batch = (end - begin) // (2 if self.layout in ("dp", "zero3") else 8)
        return {"forward" if (self.at - 1) % micro_batch < micro_batch // 3 else "backward"}


class PhantomFaultsTest(unittest.TestCase):
    def setUp(self):
        self.before, self.counts = set(folders_left()), {}
        for layout in LAYOUTS:
            plain = rehearse(ARGS.bin, layout, "")
            self.assertEqual(plain.row.get("outcome"), "ok", plain.words)
            self.counts[layout] = Counts(plain)

    def faults(self):
        dice = random.Random(ARGS.seed)
        if not ARGS.faults:
            return [Fault(self.counts, dice, *fixed) for fixed in FIXED]
        out = []
        while len(out) < ARGS.faults:
            kind = list(EXPECTED)[len(out) % len(EXPECTED)]
            fault = Fault(self.counts, dice, kind, dice.choice(list(LAYOUTS)), dice.randrange(RANKS), dice.choice(EXPECTED[kind].phases))
            if fault.at is not None:
                out.append(fault)
        return out

    def test_faults_end_as_they_should(self):
        faults, wrong = self.faults(), []
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # hangs mostly wait
            for fault, ended in zip(faults, pool.map(lambda fault: rehearse(ARGS.bin, fault.layout, fault.text), faults)):
                deviations = fault.deviations(ended)
                print(f"{fault.layout:7} {fault.text:36} {fault.phase:10} -> {ended.row.get('outcome')}, rank {ended.row.get('cause_rank')}, "
                      f"{ended.row.get('phase')}, {ended.row.get('oom_part')}{''.join('; WRONG: ' + each for each in deviations)}", flush=True)
                if deviations:
                    wrong.append((fault.layout, fault.text, fault.phase, deviations, ended.row))
        self.assertEqual(wrong, [])
        # A rehearsal of another test that begins or ends just now does not hold its lock.
        processes.wait_for(lambda: set(folders_left()) <= self.before, 60, f"no folder is left: {folders_left()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--faults", type=int, default=0, help="so many random faults instead of the fixed ones")
    parser.add_argument("--seed", type=int, default=1)
    ARGS = parser.parse_args()
    unittest.main(argv=sys.argv[:1], verbosity=2)
