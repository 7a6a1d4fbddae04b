#!/usr/bin/env python3
"""command_chaos_test.py BIN RANK [--faults N] [--seed N] [--hang-seconds N]: sweeps of real trainers (torchrun with DDP, Lightning) whose processes are
killed and stopped: trainers, launchers, ranks, agents, the orchestrator. Some trials fail by themselves: out of memory, a crash, a
hang in a collective, children left in other sessions. In the end every trial has one final result, those that nothing struck have
the outcome of their script, and no process is left. The seed repeats the choices; the instants depend on the machine. RANK is never started."""
import argparse
import collections
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
FAULTS = ["none", "none", "none", "leave", "oom", "crash", "hang"]
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
limits: {{retries_crash: 3, retries_infra: 10, hang_seconds: {hang}}}
launch: {{local: {{slots: 2}}}}
"""
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "{local_world}", "--master-addr", "{master_addr}", "--master-port", "{master_port}"]
TRAINERS = {"torchrun": ("per_node", [sys.executable, *TORCHRUN, str(SCRIPT), "ddp", "{total_steps}", "{fault}"]),
            "lightning": ("per_rank", [sys.executable, str(SCRIPT), "lightning", "{total_steps}", "{fault}"])}


def targets(mark):
    """What can be struck -> the processes that are there now."""
    found = collections.defaultdict(list)
    for each in processes.of_mark(mark):
        if each.program == "sweep":
            found["orchestrator"].append(each)
        elif each.program == "sweep-agent":
            found["rank" if "command" in each.words else "agent"].append(each)
        elif "torch.distributed.run" in each.words:
            found["launcher"].append(each)
        elif str(SCRIPT) in each.words:
            found["trainer"].append(each)
    return found


class Round:
    def __init__(self, args, dice, name, folder):
        self.dice, self.name, self.folder, self.bin, self.rank = dice, name, pathlib.Path(folder), args.bin, args.rank
        self.environment, self.mark = processes.marked_environment()
        self.environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1] / "python"), os.environ.get("PYTHONPATH", "")])
        faults = FAULTS[:]
        dice.shuffle(faults)
        way, command = TRAINERS[name]
        (self.folder / "grid.yaml").write_text(GRID.format(command=json.dumps(command), processes=way, faults=json.dumps(faults),
                                                           numbers=list(range(len(faults))), hang=args.hang_seconds))
        self.db, self.made, self.struck, self.frozen, self.pack = self.folder / "r.db", collections.Counter(), set(), [], []

    def start(self):
        words = ["resume", "--take-over"] if self.planned() else ["run", "grid.yaml"]
        with open(self.folder / "sweep.log", "ab") as log:
            return subprocess.Popen([self.bin / "sweep", *words, "--db", self.db, "--rank", self.rank], cwd=self.folder, env=self.environment,
                                    stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def planned(self):
        return self.db.exists() and bool(database.rows(self.db, "select 1 from sqlite_master where name = 'plan_entry'")) and \
            bool(database.trials(self.db))

    def strike(self):
        """One fault, if there is a process to strike."""
        there = targets(self.mark)
        possible = [(what, role) for what, role in KINDS if there[role] and (there["trainer"] or role in ("orchestrator", "agent"))]
        if not any(kind in self.pack for kind in possible):
            self.pack = KINDS[:]  # a shuffled pack: each kind finds something before one comes again
            self.dice.shuffle(self.pack)
        kind = next((kind for kind in self.pack if kind in possible), None)
        if kind is None:
            return
        self.pack.remove(kind)
        what, role = kind
        each = self.dice.choice(sorted(there[role], key=lambda process: process.pid))
        if what == "freeze":
            os.kill(each.pid, signal.SIGSTOP)
            self.frozen.append((time.monotonic() + FREEZE_SECONDS, each.pid))
        else:
            self.struck.add(processes.attempt_of(each))
            os.kill(each.pid, signal.SIGKILL)
        self.made[f"{what} {role}"] += 1

    def thaw(self, everything=False):
        for until, pid in self.frozen[:]:
            if everything or time.monotonic() >= until:
                self.frozen.remove((until, pid))
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    continue

    def run_once(self, budget):
        process, next_strike = self.start(), time.monotonic() + self.dice.uniform(1, 5)
        try:
            while process.poll() is None:
                self.thaw()
                if self.made.total() < budget and time.monotonic() >= next_strike:
                    try:
                        self.strike()
                    except ProcessLookupError:
                        pass  # it ended just now
                    next_strike = time.monotonic() + self.dice.uniform(1, 5)
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
        excused = {trial for attempt, trial in database.rows(
            self.db, "select a.id, t.id from attempt a join plan_entry p on p.key = a.entry join trial t on t.key = p.trial")
            if attempt in self.struck}
        shown = database.rows(self.db, "select trial, outcome, json_extract(labels, '$.fault'), reason from results")
        assert len(shown) == len(FAULTS), shown
        wrong = [row for row in shown if row[0] not in excused and row[1] != EXPECTED[row[2]]]
        assert not wrong, f"(trial, outcome, fault, reason) that nothing struck: {wrong}"
        unclean = database.rows(self.db, "select id, cause from attempt where clean = 0")
        attempts = database.rows(self.db, "select count(*) from attempt")[0][0]
        print(f"{self.name}: {self.made.total()} faults {dict(self.made)}, {attempts} attempts for {len(shown)} trials, {len(excused)} excused, "
              f"{len(unclean)} attempts that left processes", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("rank", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--faults", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--hang-seconds", type=int, default=120)
    args = parser.parse_args()
    print(f"--faults {args.faults} --seed {args.seed}", flush=True)
    dice, made, number = random.Random(args.seed), collections.Counter(), 0
    while made.total() < args.faults:
        name = sorted(TRAINERS)[number % len(TRAINERS)]
        number += 1
        left = args.faults - made.total()
        with tempfile.TemporaryDirectory(prefix="sweep-struck-") as folder:
            made.update(Round(args, dice, name, folder).play(min(left, -(-args.faults // 2)) if number == 1 else left))
    print(f"{made.total()} faults: {dict(sorted(made.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
