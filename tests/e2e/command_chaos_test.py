#!/usr/bin/env python3
"""command_chaos_test.py BIN RANK [--faults N] [--seed N] [--trainers A,B] [--trials N]: sweeps of real trainers whose processes are killed and
stopped: trainers, launchers, ranks, agents, the orchestrator. Some trials fail by themselves: out of memory, a crash, a hang in a
collective, children left in other sessions. In the end every trial has one final result, that of its script unless its last attempt was
struck, and no process is left. The seed repeats the choices; the instants depend on the machine. RANK is never started."""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import database
import processes

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "trainers" / "struck_train.py"
EXPECTED = {"none": "ok", "leave": "ok", "oom": "oom", "crash": "crash", "hang": "hang"}
FAULTS = ["hang", "leave", "crash", "oom", "none"]  # one of each; further trials take turns at the last three
LEAST_HANG_SECONDS, MOST_HANG_SECONDS, START_SECONDS = 60, 120, 900  # other work may come after the start was timed
MOST_PAUSE = 15  # seconds between two faults, on average and at most
RUNS_WITHOUT_FAULTS = 4
FREEZE_SECONDS = 2
KINDS = [("kill", role) for role in ("orchestrator", "agent", "rank", "launcher", "trainer")] + [("freeze", "trainer")]
GRID = """
name: struck
workload:
  command: {command}
  processes: {processes}
  folder: .
  axes:
    fault: {{type: text, default: none}}
    number: {{type: integer, default: 0}}
base: {{hardware: cpu, gpus_per_node: 2, dp: 2}}
zip: [{{fault: {faults}, number: {numbers}}}]
measure: {{warmup_steps: 1, steps: 5}}
limits: {{retries_crash: 2, retries_infra: 50, hang_seconds: {hang}, start_seconds: {start}}}
launch: {{local: {{slots: 2}}}}
"""
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "{local_world}", "--master-addr", "{master_addr}", "--master-port", "{master_port}"]
FORKING = str(HERE / "trainers" / "torchrun.py")
LAUNCHERS = {"torchrun": ("per_node", TORCHRUN, "ddp"), "forking": ("per_node", [FORKING, *TORCHRUN[2:]], "ddp"), "fsdp2": ("per_node", TORCHRUN, "fsdp2"),
             **{mode: ("per_rank", [], mode) for mode in ("ddp", "lightning", "huggingface", "deepspeed")}}


def trainer(name):
    """How its processes are started, and the command."""
    processes_of, launcher, mode = LAUNCHERS[name]
    return processes_of, [sys.executable, *launcher, str(SCRIPT), mode, "{total_steps}", "{fault}", "{number}"]


def faults_of(trials):
    """The behaviour of each of so many trials."""
    return (FAULTS + FAULTS[2:] * trials)[:trials]


def seconds_of_a_start():
    """How long PyTorch takes to start here and now: on a machine with other work to do it is ten times what it is alone."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.monotonic() - begun


def kinds_of(name):
    return [kind for kind in KINDS if LAUNCHERS[name][0] == "per_node" or kind[1] != "launcher"]


def is_forked_rank(process):
    """Such a rank has the words of its launcher, and its own name, before and after the launcher's end."""
    try:
        return pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "rank\n"
    except OSError:
        return False  # it is gone: no fault hits it


def targets(mark):
    """Target of faults -> its processes that exist now."""
    found = collections.defaultdict(list)
    for each in processes.of_mark(mark):
        if each.program == "sweep":
            found["orchestrator"].append(each)
        elif each.program == "sweep-agent":
            found["rank" if "command" in each.words else "agent"].append(each)
        elif "torch.distributed.run" in each.words or (FORKING in each.words and not is_forked_rank(each)):
            found["launcher"].append(each)
        elif str(SCRIPT) in each.words:
            found["trainer"].append(each)
    return found


class Round:
    def __init__(self, args, dice, name, folder, pack):
        """The pack: kinds of faults of which each comes once before one comes again; the next round of these trainers goes on with it."""
        self.dice, self.name, self.folder, self.bin, self.rank = dice, name, pathlib.Path(folder), args.bin, args.rank
        self.environment, self.mark = processes.marked_environment()
        self.environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1] / "python"), os.environ.get("PYTHONPATH", "")])
        self.faults, self.start_seconds = faults_of(args.trials), args.start_seconds
        dice.shuffle(self.faults)
        way, command = trainer(name)
        (self.folder / "grid.yaml").write_text(GRID.format(
            command=json.dumps(command), processes=way, faults=json.dumps(self.faults), numbers=list(range(args.trials)),
            hang=args.hang_seconds, start=START_SECONDS))
        self.db, self.made, self.struck, self.frozen, self.pack = self.folder / "r.db", collections.Counter(), set(), [], pack

    def start(self):
        words = ["resume", "--take-over"] if self.planned() else ["run", "grid.yaml"]
        with open(self.folder / "sweep.log", "ab") as log:
            return subprocess.Popen([self.bin / "sweep", *words, "--db", self.db, "--rank", self.rank], cwd=self.folder, env=self.environment,
                                    stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def planned(self):
        return self.db.exists() and bool(database.rows(self.db, "select 1 from sqlite_master where name = 'plan_entry'")) and \
            bool(database.trials(self.db))

    def strike(self):
        """One fault; False: there is no process to strike yet."""
        there = targets(self.mark)
        if not self.pack:
            self.pack.extend(kinds_of(self.name))
            self.dice.shuffle(self.pack)  # each kind finds something before one comes again, or trainers would never come to a step
        kind = next((kind for kind in self.pack if there[kind[1]] and (there["trainer"] or kind[1] in ("orchestrator", "agent"))), None)
        if kind is None:
            return False
        what, role = kind
        each = self.dice.choice(sorted(there[role], key=lambda process: process.pid))
        if what == "freeze":
            os.kill(each.pid, signal.SIGSTOP)
            self.frozen.append((time.monotonic() + FREEZE_SECONDS, each.pid))
        else:
            self.struck.add(processes.attempt_of(each))
            os.kill(each.pid, signal.SIGKILL)
        self.pack.remove(kind)
        self.made[f"{what} {role}"] += 1
        return True

    def thaw(self, everything=False):
        for until, pid in self.frozen[:]:
            if everything or time.monotonic() >= until:
                self.frozen.remove((until, pid))
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    continue

    def pause(self):
        """Until the next fault: about as long as a trainer takes to start, so that trials come to their steps in between."""
        return min(self.start_seconds, MOST_PAUSE) * self.dice.uniform(0.5, 2)

    def run_once(self, budget):
        process, next_strike = self.start(), time.monotonic() + self.pause()
        try:
            while process.poll() is None:
                self.thaw()
                if self.made.total() < budget and time.monotonic() >= next_strike:
                    with contextlib.suppress(ProcessLookupError):  # it ended just now
                        next_strike = time.monotonic() + (self.pause() if self.strike() else 0.5)
                time.sleep(0.05)
        finally:
            self.thaw(everything=True)
            if process.poll() is None:
                process.kill()
                process.wait()
        assert process.returncode in (0, 1, -signal.SIGKILL), f"sweep exited with {process.returncode}: {self.log()}"

    def log(self):
        return (self.folder / "sweep.log").read_text()[-3000:]

    def play(self, budget):
        quiet = 0
        while not self.planned() or database.unfinished(self.db):
            assert quiet < RUNS_WITHOUT_FAULTS, f"{quiet} undisturbed runs left {database.unfinished(self.db)}: {self.log()}"
            quiet += self.made.total() >= budget
            self.run_once(budget)
        processes.wait_until_none(self.mark, 60)
        self.check()
        return self.made

    def check(self):
        database.check(self.db)
        last = database.rows(self.db, "select p.final_attempt, t.id from plan_entry p join trial t on t.key = p.trial")
        excused = {trial for attempt, trial in last if attempt in self.struck}
        shown = database.rows(self.db, "select trial, outcome, json_extract(labels, '$.fault'), reason from results")
        assert len(shown) == len(self.faults), shown
        wrong = [row for row in shown if row[0] not in excused and row[1] != EXPECTED[row[2]]]
        assert not wrong, f"(trial, outcome, fault, reason) whose last attempt nothing struck: {wrong}"
        unclean = database.rows(self.db, "select id, cause from attempt where clean = 0")
        attempts = database.rows(self.db, "select count(*) from attempt")[0][0]
        print(f"{self.name}: {self.made.total()} faults {dict(self.made)}, {attempts} attempts for {len(shown)} trials, {len(excused)} struck in the last attempt, "
              f"{len(unclean)} attempts that left processes", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("rank", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--faults", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--trainers", type=lambda text: text.split(","), default=["lightning", "torchrun"], help=", ".join(LAUNCHERS))
    parser.add_argument("--trials", type=int, default=len(FAULTS))
    args = parser.parse_args()
    # A step takes a fraction of a start; a hang is noticed by the deadline of steps, and what comes before the first has its own.
    args.start_seconds = seconds_of_a_start()
    args.hang_seconds = min(max(LEAST_HANG_SECONDS, round(2 * args.start_seconds)), MOST_HANG_SECONDS)
    print(f"--faults {args.faults} --seed {args.seed}; a step may take {args.hang_seconds} s", flush=True)
    dice, made, number = random.Random(args.seed), collections.Counter(), 0
    packs, made_of = collections.defaultdict(list), collections.defaultdict(collections.Counter)
    share = -(-args.faults // len(args.trainers))
    while made.total() < args.faults:
        name = args.trainers[number % len(args.trainers)]
        number += 1
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="sweep-struck-") as folder:
            now = Round(args, dice, name, folder, packs[name]).play(min(args.faults - made.total(), share))
        made.update(now)
        made_of[name].update(now)
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{made.total()} faults: {dict(sorted(made.items()))}")
    for name, of_it in made_of.items():
        kinds = kinds_of(name)
        assert len(of_it) == len(kinds) or of_it.total() < len(kinds), f"{name}: kinds of faults are missing: {dict(of_it)}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
