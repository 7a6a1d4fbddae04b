#!/usr/bin/env python3
"""kill_test.py BIN GRID: kill -9 of sweep, agent, zygote or a rank at random instants; `sweep resume` brings every trial to
exactly one final result, leaves no process, and the database stays whole.

SWEEP_SEED repeats a run's choices (the instants still depend on the machine); SWEEP_KILLS is how many, 50 unless told.
"""
import collections
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import database
import processes

RUN_SECONDS = 600         # a run that takes longer hangs
RESUMES_WITHOUT_KILL = 5  # so many resumes in a row must be enough once the kills are used up
ROLES = ["sweep", "agent", "zygote", "rank"]


class Round:
    """One sweep in a database of its own, killed at until it is finished or the kills are used up."""

    def __init__(self, bin_dir, grid, folder, dice):
        self.sweep, self.grid, self.dice = bin_dir / "sweep", grid, dice
        self.db, self.log = folder / "kill.db", folder / "kill.log"
        self.environment, self.mark = processes.marked_environment()
        self.kills = collections.Counter()

    def planned(self):
        """False until the first `sweep run` has stored its plan: killed before that, there is nothing to resume."""
        try:
            return bool(database.trials(self.db))
        except sqlite3.OperationalError:  # no file, or no tables yet
            return False

    def start(self):
        command = ["resume"] if self.planned() else ["run", str(self.grid), "--on", "local"]
        with self.log.open("ab") as log:
            log.write(f"--- sweep {command[0]}\n".encode())
            log.flush()
            return subprocess.Popen([str(self.sweep), *command, "--db", str(self.db)], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, env=self.environment, start_new_session=True, cwd=self.db.parent)

    def kill_one(self, role):
        """True when a process of that role was there to be killed."""
        found = processes.by_role(self.mark)[role]
        if not found:
            return False
        try:
            os.kill(self.dice.choice(found).pid, signal.SIGKILL)
        except ProcessLookupError:
            return False  # it ended by itself just now
        self.kills[role] += 1
        return True

    def kill_while_running(self, sweep, kills):
        """At most so many kills, at random instants, each role with the same chance, until sweep ends."""
        while kills > 0:
            try:
                sweep.wait(self.dice.uniform(0.0, 1.2))
                return
            except subprocess.TimeoutExpired:
                role, until = self.dice.choice(ROLES), time.monotonic() + 5
            while sweep.poll() is None and time.monotonic() < until:
                if self.kill_one(role):
                    kills -= 1
                    break
                time.sleep(0.002)  # between two trials there is no rank: look again

    def play(self, kills):
        """Run, then resume, until every trial has a final result; at most so many kills on the way."""
        quiet = 0
        while not self.planned() or database.unfinished(self.db):
            assert quiet < RESUMES_WITHOUT_KILL, f"{quiet} undisturbed runs left {database.unfinished(self.db)[:5]}"
            before, sweep = self.kills.total(), self.start()
            self.kill_while_running(sweep, kills - before)
            code = sweep.wait(RUN_SECONDS)
            assert code in (0, 1, -signal.SIGKILL), f"sweep exited {code}"
            quiet = quiet + 1 if self.kills.total() == before else 0


def play_rounds(bin_dir, grid, dice, kills):
    """Rounds until all kills are made; each ends with everything that must hold."""
    made, trials, total = 0, None, collections.Counter()
    while made < kills:
        with tempfile.TemporaryDirectory(prefix="sweep-kill-") as name:
            played = Round(bin_dir, grid, pathlib.Path(name), dice)
            try:
                played.play(kills - made)
                processes.wait_until_none(played.mark)
                database.check(played.db)
                found = database.outcomes(played.db)
                assert set(found) == database.trials(played.db), "a trial of the plan has no final result"
                assert trials is None or set(found) == trials, f"trials differ between rounds: {set(found) ^ trials}"
                trials = set(found)
            except BaseException:
                print(played.log.read_text(errors="replace")[-6000:])
                print("still running:", *processes.of_mark(played.mark), sep="\n  ")
                for process in processes.of_mark(played.mark):
                    os.kill(process.pid, signal.SIGKILL)
                raise
        made += played.kills.total()
        total += played.kills
        print(f"round: {made} of {kills} kills made, {dict(played.kills)}, outcomes {dict(collections.Counter(found.values()))}",
              flush=True)
    return total


def main():
    bin_dir, grid = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    seed = int(os.environ.get("SWEEP_SEED") or random.SystemRandom().randrange(1 << 31))
    kills = int(os.environ.get("SWEEP_KILLS") or 50)
    print(f"SWEEP_SEED={seed} SWEEP_KILLS={kills}", flush=True)
    total = play_rounds(bin_dir, grid, random.Random(seed), kills)
    print(f"{sum(total.values())} kills: {dict(total)}")


if __name__ == "__main__":
    main()
