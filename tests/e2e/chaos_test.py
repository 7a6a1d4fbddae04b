#!/usr/bin/env python3
"""chaos_test.py BIN FAKE_RANK slurm|ssh [--faults N] [--seed N] [--only REGEX] [--job-share P] [--unwatched] [--folder F] [--commands] [--nodes N]: random faults over sweeps on four nodes. Whatever is
killed, frozen, cut off, filled up, cancelled or drained: in the end every trial has exactly one final result, nothing ran
again after one, trials that no fault struck have the verdict of their script, and nothing is left on any node.

The seed repeats a run's choices; the instants still depend on the machine. Faults are counted over as many sweeps as they
take; `sweep resume` follows whenever the orchestrator is gone."""
import argparse
import collections
import contextlib
import pathlib
import random
import re
import signal
import sys
import tempfile
import time
import traceback

import chaos_faults
import fleet_sweep
from cluster import daemons, fleet, ordinary_user, slurm, sshd

TRIES_OF_A_FAULT = 16   # attempts that one fault may undo: four nodes of an allocation and its inbox, with a margin
STUCK_SECONDS = 150     # so long without anything new in the database is a hang of ours
TEND_SECONDS = 20       # so long without anything new, and an administrator looks after the nodes
QUIET_RESUMES = 6       # undisturbed runs that must be enough
CHANGE_OF_HOST = 0.3    # share of an orchestrator's lives that begin on any host; else on the one before
AS_JOB = 0.6            # share that are a job, on Slurm (--job-share); the first one of every second sweep is
PLAYED_BY_TRAINERS = {"ok", "oom", "crash_exit", "hang", "hang_ignore_sigterm", "double_fork", "crash_signal"}
MIX = {"ok": 22, "oom": 3, "crash_exit": 2, "unsupported": 1, "hang": 1, "hang_ignore_sigterm": 1, "double_fork": 3,
       "bare_daemon": 3, "huge_log": 2, "crash_signal": 1}


class Round:
    """One sweep in a database of its own, struck until it is finished or the faults are used up."""

    def __init__(self, own, args, dice, number):
        scripts = [script for script, count in MIX.items() for _ in range(count) if not args.commands or script in PLAYED_BY_TRAINERS]
        dice.shuffle(scripts)
        trials = [(script, dice.choice([nodes for nodes in (1, 1, 2, 2, 3, 4) if nodes <= len(own.nodes)])) for script in scripts]
        self.own, self.dice, self.number = own, dice, number
        self.sweep = fleet_sweep.Sweep(own, args.bin, args.rank, f"chaos{number}", trials, step_ms=150, hang_seconds=12,
                                       retries=50, command=["per_rank", "per_node"][number % 2] if args.commands else None)
        self.strikes = chaos_faults.Strikes(own, dice)
        self.strikes.sweep = self.sweep
        self.sweep.while_locked = self.strikes.give_back
        self.strikes.host = dice.choice(own.hosts) if own.hosts else None
        self.faults = {name: fault for name, fault in chaos_faults.faults_of(own).items() if re.search(args.only, name)}
        self.job_share, self.unwatched = args.job_share, args.unwatched
        self.names = []  # a shuffled pack: every fault finds something before one comes again
        self.log, self.overlaps = [], set()
        self.entries, self.seen = {}, (None, time.monotonic())
        self.tended = self.seen
        self.disk_struck = False

    def say(self, text):
        self.log.append(f"{time.strftime('%H:%M:%S')} {text}")

    def strike(self):
        """One fault that found something to strike; None: none did."""
        if not self.names:
            self.names = sorted(self.faults)
            self.dice.shuffle(self.names)
        for name in self.names:
            hit = self.faults[name](self.strikes)
            if hit is not None:
                self.names.remove(name)
                self.strikes.struck.append(name)
                self.disk_struck = self.disk_struck or name == "disk full"
                self.say(f"{name}: {hit}")
                return name
        return None

    def look(self):
        """Ends a run that no longer moves; notes trials of which two attempts live at once."""
        now = time.monotonic()
        alive = chaos_faults.ranks_by_attempt(self.own)
        if len(alive) > 1 and self.sweep.planned():
            if any(attempt not in self.entries for attempt in alive):
                self.entries = dict(self.sweep.rows("select id, entry from attempt"))
            counted = collections.Counter(self.entries.get(attempt) for attempt in alive)
            for entry, count in counted.items():
                if entry and count > 1:
                    self.overlaps.add((entry, tuple(a for a in alive if self.entries.get(a) == entry)))
        state = self.sweep.rows("select count(*), max(id), (select count(*) from result) from attempt")[0] \
            if self.sweep.planned() else None
        robbed = any("wakes up" in what for _, what, _ in self.strikes.owed)  # a minute's silence comes before a takeover
        if state != self.seen[0] or robbed:
            self.seen = self.tended = (state, now)
        if now - self.tended[1] > TEND_SECONDS and self.own.isolated:
            self.tended = (state, now)
            if told := self.own.tend(" ".join(what for _, what, _ in self.strikes.owed)):
                self.say(f"nodes put back into service: {told}")
        return now - self.seen[1] < STUCK_SECONDS

    def begin(self):
        """The process that is waited for: an orchestrator on some login host, or who watches one that is a Slurm job. A person
        who comes back to a sweep takes it over from what is gone."""
        if self.sweep.planned() and self.dice.random() < CHANGE_OF_HOST and self.own.hosts:
            self.strikes.host = self.dice.choice(self.own.hosts)
        host = self.strikes.host
        planned = self.sweep.planned()
        chosen = self.dice.random() < self.job_share if planned else self.number % 2 == 1
        if "as job" in self.own.can and chosen and all(each.poll() is not None for each in self.strikes.helpers):
            more = ["--take-over"] if planned else []
            code = self.sweep.start("--as-job", "service", *more, host=host).wait(2 * STUCK_SECONDS)
            self.say(f"handed to a job from {host}: exit {code}")
            with contextlib.suppress(TimeoutError):  # it may wait for its node
                daemons.wait_for(lambda: (self.sweep.holder() or (0, 0, 0))[2], 15, "the job has the lease", 0.1)
            if self.unwatched:
                return self.own.wait_for_orchestrators()
        return self.sweep.start(*(["--take-over"] if self.sweep.planned() else []), host=host)

    def run_once(self, budget):
        """One life of the orchestrator with at most so many faults; its exit code and how many there were."""
        process, made = self.begin(), 0
        self.disk_struck = any("disk" in what for _, what, _ in self.strikes.owed)
        next_strike = time.monotonic() + self.dice.uniform(0.2, 2)
        next_look = 0
        while process.poll() is None:
            self.strikes.give_back()
            if made < budget and time.monotonic() >= next_strike and len(self.strikes.owed) < 3:
                made += self.strike() is not None
                next_strike = time.monotonic() + self.dice.expovariate(1 / 1.2)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + 0.3
                if not self.look():
                    process.send_signal(signal.SIGABRT)
                    process.send_signal(signal.SIGCONT)  # a fault may have stopped it
                    process.wait()
                    raise AssertionError(f"nothing new for {STUCK_SECONDS} s, {len(self.strikes.owed)} faults not given back")
            time.sleep(0.02)
        self.say(f"sweep exited with {process.returncode}")
        allowed = {0, 1, -signal.SIGKILL} | ({2} if self.disk_struck or "robbed" in self.strikes.struck else set())
        allowed |= {4} if self.disk_struck else set()  # there was no room for what it wrote
        assert process.returncode in allowed, f"sweep exited with {process.returncode}"
        return made

    def play(self, budget):
        made = quiet = 0
        while self.sweep.unfinished():
            assert quiet < QUIET_RESUMES, f"{quiet} undisturbed runs left {self.sweep.unfinished()[:5]}"
            if made >= budget:
                self.strikes.give_back(everything=True)
                quiet += 1
            self.seen = self.tended = (None, time.monotonic())
            made += self.run_once(budget - made)
        self.strikes.give_back(everything=True)
        self.end_helpers()
        return made

    def end_helpers(self):
        """Who watches, or has taken over, ends with the sweep; so do orchestrators that Slurm was to start again."""
        for each in self.strikes.helpers:
            assert each.wait(STUCK_SECONDS) in {0, 1, 2, -signal.SIGKILL}, f"a second resume exited with {each.returncode}"
        if "as job" in self.own.can:
            daemons.wait_for(lambda: self.own.start_soon() or not self.own.orchestrators(), STUCK_SECONDS,
                             "no orchestrator's job is left", 1)

    def check(self):
        self.sweep.check_end()
        attempts, struck = sum(len(each) for each in self.sweep.attempts().values()), len(self.strikes.struck)
        assert attempts <= 2 * len(self.sweep.trials) + TRIES_OF_A_FAULT * struck, \
            f"{attempts} attempts for {len(self.sweep.trials)} trials and {struck} faults: some go to and fro"
        self.sweep.check_answers(self.strikes.excused(self.sweep))
        self.sweep.check_nodes(90)
        # After kill -9 of its daemons Slurm itself may keep a job that is over, or drain a node: said, and put right.
        if in_the_way := self.own.settle():
            print(f"Slurm had to be put right: {in_the_way}", flush=True)
        assert not self.overlaps, f"(trial, attempts) that lived at once: {sorted(self.overlaps)[:5]}"

    def tell(self):
        return "\n".join(["== faults", *self.log[-60:], self.sweep.tell()])


def play_all(own, args, dice):
    made, total, number = 0, collections.Counter(), 0
    while made < args.faults:
        number += 1
        each = Round(own, args, dice, number)
        try:
            now = each.play(args.faults - made)
            each.check()
        except BaseException as failure:
            print(each.tell(), flush=True)
            traceback.print_exception(failure)
            if args.keep:
                input("kept; Return ends it ")
            raise
        made += now
        total.update(each.strikes.struck)
        attempts = sum(len(tries) for tries in each.sweep.attempts().values())
        outcomes = dict(collections.Counter(each.sweep.results().values()))
        print(f"sweep {number}: {now} faults, {made} of {args.faults}; {attempts} attempts for {len(each.sweep.trials)} trials, "
              f"{len(each.strikes.excused(each.sweep))} excused; {outcomes}", flush=True)
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("rank", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("kind", choices=["slurm", "ssh"])
    parser.add_argument("--faults", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--only", metavar="REGEX", default="", help="faults whose name it finds")
    parser.add_argument("--job-share", type=float, default=AS_JOB, help="of the orchestrator's lives that are a Slurm job")
    parser.add_argument("--unwatched", action="store_true", help="no second orchestrator takes over from one that is a job while Slurm has it")
    parser.add_argument("--folder", choices=fleet.FOLDERS, default="plain", help="that holds the spools: late has a rename with a gap, unlisted is a "
                        "filesystem on no list, that holds the database too, and login hosts have boot ids of their own")
    parser.add_argument("--commands", action="store_true", help="trials are programs (trainers/fleet_train.py), one process a rank or a launcher a node")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--keep", action="store_true", help="wait at a failure, with everything as it is")
    parser.add_argument(ordinary_user.WORD, action="store_true", help="where root runs it: all nodes are then this machine")
    args = parser.parse_args()
    if ordinary_user.asked():
        if not ordinary_user.reaches(args.bin):
            print(f"skipped: other users cannot reach {args.bin}")
            return 77
        return ordinary_user.again()
    make, needs = {"slurm": (fleet.SlurmFleet, slurm), "ssh": (fleet.SshFleet, sshd)}[args.kind]
    if needs.missing():
        print(f"skipped: this machine lacks {', '.join(needs.missing())}")
        return 77
    print(f"{args.kind}: --faults {args.faults} --seed {args.seed}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"sweep-chaos-{args.kind}-") as folder, make(folder, nodes=args.nodes, shows=args.folder, bin_dir=args.bin) as own:
        own.can |= {"commands"} if args.commands else set()
        total = play_all(own, args, random.Random(args.seed))
    print(f"{total.total()} faults in {time.monotonic() - began:.0f} s: {dict(sorted(total.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
