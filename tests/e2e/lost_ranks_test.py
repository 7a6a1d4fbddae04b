#!/usr/bin/env python3
"""lost_ranks_test.py BIN [--full | --late]: kills (SIGKILL) or stops (SIGSTOP) one rank of a trial, for every strategy of the training
step, at every moment of its life: while ranks meet, in forward, backward and optimizer, while it communicates, between steps.
Each time the attempt ends with the right verdict (crash, hang), the evidence tells of each rank its phase and its last
collective, and nothing of it survives.

Without --full: every strategy with both signals, the moments dealt out so that each comes; then the cases of --late. SWEEP_SEED repeats a run's
choices (the instants still depend on the machine).

--late: only the last few cases, in which this test strikes only after the agent has lost patience with the zygote that the test stopped, as on a
machine under load. The agent has then started the attempt again by exec, and its new ranks are struck.
"""
import argparse
import collections
import json
import mmap
import os
import pathlib
import random
import signal
import struct
import subprocess
import tempfile
import time

import database
import processes

HANG_SECONDS = int(os.environ.get("SWEEP_HANG_SECONDS") or 8)  # without progress: a hang; aiming alone slows a rank
AIM_SECONDS = 30    # to find a rank at the wanted moment
END_SECONDS = 60    # from the blow to the attempt's end
ROUNDS = 8          # a moment that was missed comes again in the next one
FIRST_MARK = 1000   # first value of grad_bucket_mb, which tells the cases apart: no bucket is ever full

MODELS = {
    "dense": "{name: dense, family: llama, layers: 4, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 128, vocab_size: 256}",
    "experts": "{name: experts, family: mixtral, layers: 4, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 64, "
               "vocab_size: 256, experts: 4, experts_per_token: 2}",
    "one key": "{name: one-key, family: llama, layers: 4, hidden_size: 64, heads: 4, kv_heads: 1, intermediate_size: 128, vocab_size: 256}",
    "small": "{name: small, family: llama, layers: 1, hidden_size: 32, heads: 4, kv_heads: 4, intermediate_size: 32, vocab_size: 64}"}
MODEL_OF = {"ep": "experts", "tp, kv 1": "one key", "filler": "small"}  # models of strategies that need one of their own
DEFAULTS = {"dp": 1, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "zero": 0, "sp": "false", "schedule": "1f1b", "vpp": 1, "cp_comm_type": "ring",
            "routing": "balanced"}
STRATEGIES = {
    "zero 0": {"dp": 2}, "zero 1": {"dp": 2, "zero": 1}, "zero 2": {"dp": 2, "zero": 2}, "zero 3": {"dp": 2, "zero": 3},
    "tp": {"tp": 2}, "tp + sp": {"tp": 2, "sp": "true"}, "tp, kv 1": {"tp": 2}, "1f1b": {"pp": 2},
    "interleaved": {"pp": 2, "schedule": "interleaved", "vpp": 2}, "zero bubble": {"pp": 2, "schedule": "zero_bubble"}, "ring": {"cp": 2},
    "exchange": {"cp": 2, "cp_comm_type": "all_to_all"}, "ep": {"dp": 2, "ep": 2, "routing": "learned"}}
SETTINGS = {**STRATEGIES, "filler": {"dp": 2}}
# schema/progress.h: Phase and Part
INIT, WARMUP, STEP = 1, 4, 5
NONE, FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION = range(5)
MOMENTS = {"meeting": (INIT, NONE), "warm-up forward": (WARMUP, FORWARD), "warm-up backward": (WARMUP, BACKWARD),
           "forward": (STEP, FORWARD), "backward": (STEP, BACKWARD), "optimizer": (STEP, OPTIMIZER),
           "communication": (STEP, COMMUNICATION), "between steps": (STEP, NONE)}
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
VERDICT = {"kill": "crash", "stop": "hang"}

Case = collections.namedtuple("Case", "strategy moment blow")
Page = collections.namedtuple("Page", "phase part beats waits")
FILLERS = [Case("filler", "forward", "kill")] * 3  # small: what is predicted to be fast runs first


class RankPage:
    """The heartbeat page of a rank (schema/progress.h), mapped."""
    def __init__(self, path):
        with open(path, "rb") as file:
            self.memory = mmap.mmap(file.fileno(), 96, prot=mmap.PROT_READ)

    def look(self):
        """None before the rank has touched it."""
        magic, phase, part, _, beats = struct.unpack_from("<QIIQQ", self.memory)
        return Page(phase, part, beats, struct.unpack_from("<Q", self.memory, 72)[0] != 0) if magic else None


def state_of(pid):
    """Its state by the kernel; None when it is gone."""
    try:
        return processes.Process(pid).state
    except (OSError, IndexError, ValueError):
        return None


def send(pid, blow):
    """A process that is gone needs no signal: its agent has replaced it, or will."""
    try:
        os.kill(pid, blow)
    except ProcessLookupError:
        pass


def stop(pid):
    """Returns once it stands still, or is gone."""
    send(pid, signal.SIGSTOP)
    processes.wait_for(lambda: state_of(pid) in ("T", None), END_SECONDS, f"{pid} stands still")


class Attempt:
    """One that runs: its case, its pages and its ranks."""
    def __init__(self, folder, mark):
        self.folder, self.number, self.mark = folder, int(folder.name), mark
        self.trial = json.loads((folder / "attempt_00000.json").read_text())["trial"]
        pages = [folder / f"rank_{rank:05d}.progress" for rank in range(2)]
        processes.wait_for(lambda: all(p.exists() and p.stat().st_size >= 96 for p in pages), END_SECONDS, f"the pages of {folder}")
        self.pages = [RankPage(page) for page in pages]

    def living(self):
        """pid -> rank, of the ranks that are there."""
        found = {}
        for process in processes.by_role(self.mark)["rank"]:
            try:
                log = os.readlink(f"/proc/{process.pid}/fd/1")
            except OSError:
                continue  # gone meanwhile
            if processes.attempt_of(process) == self.number and log.startswith(str(self.folder)):
                found[process.pid] = int(log.rpartition("rank_")[2].split(".")[0])
        return found

    def pid_of(self, rank):
        def there():
            return next((pid for pid, number in self.living().items() if number == rank), None)
        return processes.wait_for(there, END_SECONDS, f"rank {rank} of attempt {self.number} is there")

    def closing_word(self):
        outbox = self.folder.parent.parent / "outbox.jsonl"
        for line in outbox.read_text().splitlines():
            if '"attempt_end"' in line and line.endswith("}"):
                word = json.loads(line[9:])
                if word["kind"] == "attempt_end" and word["body"]["attempt"] == self.number:
                    return word["body"]
        return None


class Round:
    """One `sweep run` over some cases that share a measuring plan: a trial each, one after another."""
    def __init__(self, bin_dir, folder, cases, dice, late):
        self.late = late
        self.cases = {FIRST_MARK + i: case for i, case in enumerate(cases)}
        self.sweep, self.folder, self.dice = bin_dir / "sweep", folder, dice
        self.db, self.log = folder / "lost.db", folder / "lost.log"
        self.environment, self.mark = processes.marked_environment()
        self.blows, self.missed, self.zygote = {}, [], None
        self.struck_again = 0
        self.replaced = {}  # pid of a rank that was started again -> when it is struck

    def grid(self):
        axes = {key: [SETTINGS[case.strategy].get(key, value) for case in self.cases.values()]
                for key, value in DEFAULTS.items()}
        models = [MODELS[MODEL_OF.get(case.strategy, "dense")] for case in self.cases.values()]
        warm = MOMENTS[next(iter(self.cases.values())).moment][0] == WARMUP
        lines = ["name: lost-ranks", "question: Does an attempt end as it must when one of its ranks is lost?",
                 "base: {hardware: cpu, nodes: 1, gpus_per_node: 2, seq_len: 32, micro_batch_size: 1, global_batch_size: 8}",
                 "zip:", "  - model:", *[f"      - {model}" for model in models],
                 f"    grad_bucket_mb: {list(self.cases)}",
                 *[f"    {key}: [{', '.join(map(str, values))}]" for key, values in axes.items()],
                 f"measure: {{warmup_steps: {100000 if warm else 2}, steps: {1 if warm else 100000}}}",
                 f"limits: {{retries_crash: 0, hang_seconds: {HANG_SECONDS}}}", "launch: {local: {slots: 2}}"]
        (self.folder / "lost.yaml").write_text("\n".join(lines) + "\n")
        return self.folder / "lost.yaml"

    def play(self):
        with self.log.open("ab") as log:
            run = subprocess.Popen([str(self.sweep), "run", str(self.grid()), "--on", "local", "--db", str(self.db)],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                                   start_new_session=True, cwd=self.folder)
        seen = set()
        while len(seen) < len(self.cases):
            attempt = processes.wait_for(lambda: self.next_attempt(run, seen), END_SECONDS, "the next attempt")
            seen.add(attempt.number)
            self.strike(attempt, self.cases[attempt.trial["grad_bucket_mb"]])
        code = run.wait(END_SECONDS)
        assert code == 1, f"sweep exited {code}: 1 is for outcomes that are not ok"
        processes.wait_until_none(self.mark)
        database.check(self.db)
        return self.judge()

    def next_attempt(self, run, seen):
        assert run.poll() is None, f"sweep ended with {run.returncode}"
        for folder in (self.db.parent / (self.db.name + ".spool")).glob("*/attempts/*"):
            if int(folder.name) not in seen and (folder / "attempt_00000.json").exists():
                return Attempt(folder, self.mark)
        return None

    def strike(self, attempt, case):
        """Aims, strikes, and waits until the attempt is over and nothing of it is left."""
        held = case.moment == "meeting" and self.hold_at_meeting(attempt)
        if not held:
            self.be_late(attempt)
            self.go_on()
        victim = 0 if held else self.dice.randrange(2)
        pid, page = attempt.pid_of(victim), None
        if held:
            stop(pid)
            page = attempt.pages[victim].look()
            page = page if page.phase == INIT else None  # a fork that was under way may have let it go on
        elif case.moment != "meeting":
            page = self.aim(attempt, victim, pid, MOMENTS[case.moment])
        if page is None:
            self.missed.append(case)
        self.be_late(attempt)
        send(pid, SIGNALS[case.blow])
        self.go_on()
        self.blows[attempt.trial["grad_bucket_mb"]] = (attempt, victim, page)
        if len(self.blows) < len(self.cases):
            processes.wait_for(lambda: attempt.pages[1].look() or attempt.closing_word(), END_SECONDS, "both ranks were forked")
            self.keep_zygote_still()
        word = processes.wait_for(lambda: self.closed(attempt, case, victim, pid), END_SECONDS, f"the end of attempt {attempt.number} ({case})")
        assert word["clean"], f"{case}: {word['cleanup_failure']}"
        left = attempt.living()
        assert not left, f"{case}: the attempt is closed, but {left} live"

    def closed(self, attempt, case, victim, struck):
        """The attempt's last record. An agent whose zygote stood still for too long ends it and starts the attempt again by exec: the
        rank in the victim's place is another process then, which is struck once it has had time to get to its steps."""
        for pid, rank in attempt.living().items():
            if rank == victim and pid != struck and time.monotonic() > self.replaced.setdefault(pid, time.monotonic() + 5):
                self.replaced[pid] = float("inf")
                self.missed.append(case)
                self.blows[attempt.trial["grad_bucket_mb"]] = (attempt, victim, None)
                self.struck_again += 1
                send(pid, SIGNALS[case.blow])
        return attempt.closing_word()

    def be_late(self, attempt):
        """Waits until the agent has killed the zygote that stands still, if it owes the attempt a rank."""
        def over():
            return all(page.look() for page in attempt.pages) or state_of(self.zygote) != "T"
        if self.late and self.zygote:
            processes.wait_for(over, END_SECONDS, "the agent ends a zygote that stands still")

    def keep_zygote_still(self):
        """No rank of the next attempt is forked before this test looks."""
        self.zygote = next((process.pid for process in processes.by_role(self.mark)["zygote"]), None)
        if self.zygote:
            stop(self.zygote)

    def go_on(self):
        if self.zygote and state_of(self.zygote):
            send(self.zygote, signal.SIGCONT)

    def hold_at_meeting(self, attempt):
        """Lets the zygote fork rank 0 and no other, so that it waits to be met; False when the zygote was faster."""
        if not self.zygote:
            return False
        self.go_on()
        until = time.monotonic() + AIM_SECONDS
        while attempt.pages[0].look() is None and time.monotonic() < until:
            pass  # a fork takes a millisecond: no time for a pause
        stop(self.zygote)
        if attempt.pages[1].look() is not None:
            return False
        processes.wait_for(lambda: attempt.pages[0].look().waits, AIM_SECONDS, "rank 0 waits to be met")
        return True

    def aim(self, attempt, victim, pid, moment):
        """Stops the rank at that moment (phase, part) and returns its page; None when it never was there."""
        until = time.monotonic() + AIM_SECONDS
        while time.monotonic() < until:
            stop(pid)
            page = attempt.pages[victim].look()
            if page and (page.phase, page.part) == moment:
                return page
            send(pid, signal.SIGCONT)
            moved = time.monotonic() + 1  # it may wait for its peer, or for a core
            while page and attempt.pages[victim].look().beats == page.beats and time.monotonic() < moved:
                time.sleep(0.0005)
            time.sleep(self.dice.uniform(0, 0.003))  # so that it stands elsewhere the next time
        return None

    def judge(self):
        """Every attempt's record says what was done to it."""
        stored = database.rows(self.db, "select v.grad_bucket_mb, v.outcome, v.reason, r.rank, r.evidence from results v "
                                        "join trial t on t.id = v.trial join plan_entry p on p.trial = t.key "
                                        "join result r on r.attempt = p.final_attempt")
        assert {row[0] for row in stored} == set(self.cases), "a trial without a result"
        for mark, outcome, reason, rank, evidence in stored:
            case, (_, victim, page) = self.cases[mark], self.blows[mark]
            what = f"{case}: {outcome}, {reason}, {evidence}"
            assert outcome == VERDICT[case.blow], what
            told = json.loads(evidence)
            ranks = told.get("hang", told)["ranks"]
            assert sorted(r["rank"] for r in ranks) == [0, 1], what
            assert all(r["phase"] and r["last_collective"] for r in ranks), what
            if case.blow == "kill":
                assert rank == victim and "SIGKILL" in reason, what
            elif page and not page.waits:
                assert rank == victim, what  # the one that waits for no other
            if page:
                there = next(r for r in ranks if r["rank"] == victim)
                assert (there["phase"], there["part"]) == named(MOMENTS[case.moment]), what
                tell(case, outcome, victim, ranks)
        return self.missed


def tell(case, outcome, victim, ranks):
    where = "; ".join(f"rank {r['rank']}: {r['phase']}/{r['part']}, last {r['last_collective']}" for r in ranks)
    print(f"| {case.strategy:11} | {case.moment:16} | {case.blow} rank {victim} | {outcome:5} | {where}", flush=True)


def named(moment):
    """A moment as evidence spells it."""
    return {INIT: "init", WARMUP: "warmup", STEP: "step"}[moment[0]], ("none", "forward", "backward", "optimizer", "communication")[moment[1]]


def play_round(bin_dir, cases, dice, late=False):
    with tempfile.TemporaryDirectory(prefix="sweep-lost-") as name:
        played = Round(bin_dir, pathlib.Path(name), cases, dice, late)
        try:
            return played.play(), played.struck_again
        except BaseException:
            print(played.log.read_text(errors="replace")[-4000:])
            print("still running:", *processes.of_mark(played.mark), sep="\n  ")
            for process in processes.of_mark(played.mark):
                os.kill(process.pid, signal.SIGKILL)
            raise


def lasts(strategy, moment):
    """Without gradients to reduce or stages to wait for, communication of its own is over in microseconds."""
    return moment != "communication" or STRATEGIES[strategy].keys() & {"dp", "pp"}


def dealt_out(dice):
    """Every strategy with both blows, every moment."""
    pairs = [(strategy, blow) for strategy in STRATEGIES for blow in SIGNALS]
    dice.shuffle(pairs)
    cases, moments = [], []
    for strategy, blow in pairs:
        moments = moments or list(MOMENTS)
        moment = next((m for m in moments if lasts(strategy, m)), "backward")
        if moment in moments:
            moments.remove(moment)
        cases.append(Case(strategy, moment, blow))
    return cases


def every(dice):
    cases = [Case(strategy, moment, blow) for strategy in STRATEGIES for moment in MOMENTS for blow in SIGNALS
             if lasts(strategy, moment)]
    dice.shuffle(cases)
    return cases


def late_cases(dice):
    """Fillers come first: a meeting cannot be aimed at in the first attempt of a run."""
    cases = [Case(strategy, "meeting", blow) for strategy in dice.sample(list(STRATEGIES), 2) for blow in SIGNALS]
    return FILLERS + cases


def strike_late(bin_dir, dice):
    struck = any(play_round(bin_dir, late_cases(dice), dice, late=True)[1] for _ in range(ROUNDS))
    assert struck, "no rank of an attempt that was started again was struck"
    print("attempts that were started again by exec ended as they must when their ranks were lost")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--full", action="store_true", help="every strategy x moment x signal")
    parser.add_argument("--late", action="store_true", help="strike after the agent has started the attempt again")
    options = parser.parse_args()
    seed = int(os.environ.get("SWEEP_SEED") or random.SystemRandom().randrange(1 << 31))
    print(f"SWEEP_SEED={seed}", flush=True)
    dice = random.Random(seed)
    if options.late:
        return strike_late(options.bin_dir.resolve(), dice)
    cases = every(dice) if options.full else dealt_out(dice)
    pending, began = cases, time.monotonic()
    for _ in range(ROUNDS):
        missed = []
        for warm in (True, False):
            chosen = [case for case in pending if (MOMENTS[case.moment][0] == WARMUP) == warm]
            if not warm and 0 < len(chosen) < len(FILLERS):
                chosen = chosen + FILLERS  # a meeting cannot be aimed at in the first attempt of a run
            if chosen:
                missed += play_round(options.bin_dir.resolve(), chosen, dice)[0]
        pending = [case for case in missed if case in pending]
        if not pending:
            break
    assert not pending, f"no rank was ever found there: {pending}"
    if not options.full:
        strike_late(options.bin_dir.resolve(), dice)
    print(f"{len(cases)} ranks lost in {time.monotonic() - began:.0f} s: every attempt ended as it must, nothing survived")


if __name__ == "__main__":
    main()
