"""A sweep of scripted trials on a fleet (tests/e2e/cluster/fleet.py), and what must hold of its database and of the nodes when
it is over, whatever happened meanwhile."""
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

import database
from cluster import daemons

# The scripts that tests/support/fake_trial.cpp plays, by number: name, outcome.
SCRIPTS = [("ok", "ok"), ("oom", "oom"), ("crash_exit", "crash"), ("exception", "crash"), ("unsupported", "unsupported"),
           ("hang_ignore_sigterm", "hang"), ("double_fork", "ok"), ("bare_daemon", "ok"), ("huge_log", "ok"),
           ("crash_signal", "crash"), ("hang", "hang"), ("real", "ok")]
NUMBER = {name: number for number, (name, _) in enumerate(SCRIPTS)}
EXPECTED = dict(SCRIPTS)
OUTCOMES = ["ok", "oom", "hang", "timeout", "crash", "invalid", "node_lost", "unsupported", "cancelled"]  # schema/outcome.h
AGAIN = {"crash", "node_lost", "cancelled"}  # outcomes that another attempt may follow
RETRIES_CRASH, RETRIES_INFRA = 1, 3          # the defaults of a grid
TRAINER = pathlib.Path(__file__).resolve().parent / "trainers" / "fleet_train.py"
LOCKED_READS = 20  # five seconds each
REAL_RANKS = 2  # limit of a node: each loads LibTorch


class Sweep:
    """trials: (name of the script, nodes) each; the last rank of a trial is the one that misbehaves. `command`: trials are processes of
    trainers/fleet_train.py, per_rank or per_node."""

    def __init__(self, fleet, bin_dir, rank, name, trials, ranks_per_node=2, step_ms=1, hang_seconds=5, retries=RETRIES_INFRA,
                 command=None):
        self.fleet, self.program, self.rank, self.name = fleet, pathlib.Path(bin_dir) / "sweep", rank, name
        self.trials = [(64 + i, script, nodes) for i, (script, nodes) in enumerate(trials)]
        self.folder = fleet.folder / name
        self.folder.mkdir(mode=0o755)
        self.log, self.grid = self.folder / "log", self.folder / "grid.yaml"
        (fleet.disk / name).mkdir()
        self.db = (fleet.disk / name if fleet.shows == "unlisted" else self.folder) / "r.db"
        if fleet.shows != "unlisted":
            pathlib.Path(f"{self.db}.spool").symlink_to(fleet.disk / name)
        self.while_locked = lambda: None
        preloaded = {"LD_PRELOAD": str(self.program.parent / "libunlisted_filesystem.so")} if fleet.shows == "unlisted" else {}
        self.environment = {**fleet.environment, **preloaded, "SWEEP_SITE": str(self.folder / "no-site.yaml"), "OMP_NUM_THREADS": "1"}
        commands = {"workload": {
            "command": [sys.executable, str(TRAINER), "{script}", "{total_steps}", str(step_ms), "{node}"], "processes": command, "folder": str(self.folder),
            "env": {"SWEEP_WORLD": "{world}", "SWEEP_LOCAL_WORLD": "{local_world}"},
            "axes": {"script": {"type": "text", "default": "ok"}}}}
        labels = {"fake": "micro_batch_size - 1", "fake_rank": "nodes * gpus_per_node - 1", "fake_step_ms": str(step_ms)}
        self.grid.write_text(json.dumps({  # YAML knows JSON
            "name": name, **(commands if command else {}),
            "model": {"family": "llama", "layers": 2, "hidden_size": 64, "heads": 4, "kv_heads": 4, "intermediate_size": 172,
                      "vocab_size": 256, "tie_embeddings": False},
            "base": {"hardware": "cpu"},
            "zip": [{"seq_len": [length for length, _, _ in self.trials], "nodes": [nodes for _, _, nodes in self.trials],
                     "gpus_per_node": [min(ranks_per_node, REAL_RANKS if script == "real" else ranks_per_node)
                                       for _, script, _ in self.trials],
                     "micro_batch_size": [NUMBER[script] + 1 for _, script, _ in self.trials],
                     **({"script": [script for _, script, _ in self.trials]} if command else {})}],
            **({} if command else {"derive": labels}),
            "measure": {"warmup_steps": 1, "steps": 2},
            "limits": {"trial_seconds": 120, "hang_seconds": hang_seconds, "retries_infra": retries},
            "launch": fleet.launch()}, indent=1))

    def start(self, *more, host=None):
        """`sweep run`, or `resume` once the plan is stored; on this login host."""
        words = [*(["resume"] if self.planned() else ["run", str(self.grid)]), *more]
        with self.log.open("ab") as log:
            log.write(f"--- sweep {' '.join([words[0], *more])} on {host or 'this machine'}\n".encode())
            log.flush()
            command = [*self.fleet.inside(host), str(self.program), *words, "--db", str(self.db), "--rank", str(self.rank)]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                                    start_new_session=True, cwd=self.folder)

    def holder(self):
        """(host, pid, its Slurm job or 0) of whoever holds the lease."""
        found = self.rows("select host, pid, slurm_job from lease") if self.planned() else []
        return found[0] if found else None

    # --- what the database says

    def rows(self, sql):
        """Who stopped while he wrote keeps readers out of a database without a write-ahead log: he is to go on."""
        for _ in range(LOCKED_READS):
            try:
                return database.rows(self.db, sql)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
            self.while_locked()
        return database.rows(self.db, sql)

    def planned(self):
        try:
            return bool(self.rows("select 1 from plan_entry limit 1"))
        except sqlite3.OperationalError:  # no file, or no tables yet
            return False

    def unfinished(self):
        return sorted(self.rows(f"select key from plan_entry where state not in ({database.FINISHED}, {database.RETIRED})")) \
            if self.planned() else [None]

    def results(self):
        """seq_len -> final outcome."""
        return dict(self.rows("select seq_len, outcome from results where outcome is not null"))

    def attempts(self):
        """seq_len -> (attempt, outcome or None) of every attempt, in order."""
        found = {}
        for length, attempt, outcome in self.rows(
                "select t.seq_len, a.id, r.outcome from attempt a join plan_entry p on p.key = a.entry join trial t "
                "on t.key = p.trial left join result r on r.attempt = a.id order by a.id"):
            found.setdefault(length, []).append((attempt, None if outcome is None else OUTCOMES[outcome]))
        return found

    def ends_of_attempts(self, length):
        """How each attempt of one trial ended, in words: for a failed check's message."""
        return self.rows("select a.id, a.allocation, a.cause, r.reason, r.phase, a.clean from attempt a join plan_entry p on "
                         "p.key = a.entry join trial t on t.key = p.trial left join result r on r.attempt = a.id "
                         f"where t.seq_len = {length} order by a.id")

    # --- what must hold

    def check_answers(self, forgiven=()):
        """Each trial's verdict is what its script says; not of the trials whose seq_len is forgiven."""
        found = self.results()
        wrong = {(length, script, nodes): found.get(length) for length, script, nodes in self.trials
                 if found.get(length) != EXPECTED[script] and length not in forgiven}
        assert not wrong, f"(seq_len, script, nodes): outcome, where another was expected: {wrong}"

    def check_attempts(self):
        """Nothing ran again after a final result, and each attempt has one word."""
        for length, attempts in self.attempts().items():
            outcomes = [outcome for _, outcome in attempts]
            assert None not in outcomes, f"seq_len {length}: an attempt without a word: {attempts}"
            assert set(outcomes[:-1]) <= AGAIN, f"seq_len {length} ran again after a final result: {attempts}"
            assert outcomes.count("crash") <= 1 + RETRIES_CRASH, f"seq_len {length} crashed too often: {attempts}"

    def check_end(self):
        database.check(self.db)
        assert not self.unfinished(), f"without a final result: {self.unfinished()}"
        assert len(self.results()) == len(self.trials), f"{len(self.results())} results of {len(self.trials)} trials"
        self.check_attempts()
        still_open = self.rows("select id from allocation where ended_unix_ns is null")
        assert not still_open, f"open allocations: {still_open}"

    def check_nodes(self, seconds=60):
        """Nothing of it stands on any node."""
        try:
            daemons.wait_for(lambda: not self.fleet.left(), seconds, "no process left", 0.1)
        except TimeoutError:
            left = self.fleet.left()
            assert not left, "processes left:\n  " + "\n  ".join(left.values())

    @contextlib.contextmanager
    def told(self):
        """A failure within reports the state of everything."""
        try:
            yield
        except BaseException:
            print(self.tell(), flush=True)
            raise

    def tell(self):
        """Last words of everything, for a failed test."""
        spools = sorted(pathlib.Path(f"{self.db}.spool").glob("*/*.log"))
        logs = "".join(f"== {path.parent.name}/{path.name}\n{path.read_text(errors='replace')[-2500:]}\n" for path in spools[-6:])
        return f"{logs}== sweep\n{self.log.read_text(errors='replace')[-5000:]}\n== fleet {self.fleet.tell()}"


def has_real_rank(rank):
    """Whether the genuine sweep-rank lies beside the fake one."""
    return os.access(pathlib.Path(rank).parent / "sweep-rank", os.X_OK)
