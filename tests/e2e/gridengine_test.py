#!/usr/bin/env python3
"""gridengine_test.py BIN FAKE_RANK: sweeps on a real Grid Engine of this machine, with ranks that play scripts instead of training.

Each scripted outcome comes back as itself; an orchestrator killed with -9 finds its job again, running or waiting; a job that is
deleted from outside burns no retry; a master that is away for a while concludes nothing; and afterwards no process and no job is
left. Further words choose cases.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
import daemons
import database
import gridengine
import processes

END_SECONDS = 600
EXPECTED = ["ok", "oom", "crash", "crash", "unsupported", "timeout", "ok", "ok", "ok", "crash"]  # index: number of the script in fake_trial.cpp

GRID = """name: {name}
question: Does it come back from Grid Engine as it was scripted?
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, gpus_per_node: 1}}
grid: {{seq_len: {{range: [64, {last}, 1]}}}}
derive: {{fake: "{fake}", fake_step_ms: "{step_ms}"}}
measure: {{warmup_steps: 1, steps: 2}}
limits: {{trial_seconds: {limit}}}
launch: {{gridengine: {{queue: main.q, parallel_environment: smp, pe_slots: 2, max_allocations: 1, poll_seconds: 1, signal_seconds: 20}}}}
"""


class Sweep:
    """One sweep in a folder of its own, and what must hold at its end."""

    def __init__(self, bin_dir, rank, cluster, folder, trials, fake="0", step_ms=1):
        self.program, self.rank, self.cluster, self.folder = bin_dir / "sweep", rank, cluster, folder
        folder.mkdir()
        self.db, self.log, self.grid = folder / "r.db", folder / "log", folder / "grid.yaml"
        self.grid.write_text(GRID.format(name=folder.name, last=63 + trials, fake=fake, step_ms=step_ms, limit=20 if fake != "0" else 120))
        environment, self.mark = processes.marked_environment()
        self.environment = {**cluster.environment, **environment, "SWEEP_SITE": str(folder / "site.yaml")}
        (folder / "site.yaml").write_text("prices: {cpu: {node_hour: 7}}\n")

    def start(self, *words):
        command = [*self.cluster.inside(), str(self.program), *words, "--db", str(self.db), "--rank", str(self.rank)]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                                    start_new_session=True, cwd=self.folder)

    def kill_run_when(self, condition, what):
        """Starts a run and kills it with -9 when the condition holds."""
        first = self.start("run", str(self.grid))
        wait(condition, what)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()

    def rows(self, sql):
        return database.rows(self.db, sql)

    def jobs(self):
        """Jobs in the queue or running that are this sweep's allocations."""
        return [job for job in self.cluster.jobs() if job[1].startswith("sweep-a")]

    def outcomes(self):
        if not self.db.exists() or not self.rows("select name from sqlite_master where name = 'results'"):
            return []
        return [outcome for (outcome,) in self.rows("select outcome from results order by seq_len")]

    def has_results(self, count):
        return len([outcome for outcome in self.outcomes() if outcome]) >= count

    def check_end(self):
        processes.wait_until_none(self.mark, 90)
        wait(lambda: not self.cluster.jobs(), f"no job is left: {self.cluster.jobs()}")
        wait(lambda: not self.cluster.of_jobs(), f"no process of a job is left: {self.cluster.of_jobs()}")
        database.check(self.db)
        assert not self.rows("select id from allocation where ended_unix_ns is null"), "an allocation is still open"

    def tell(self):
        spools = sorted(self.folder.glob("r.db.spool/*/*.log"))
        logs = "".join(f"== {path.parent.name}/{path.name}\n{path.read_text(errors='replace')[-1500:]}\n" for path in spools)
        return f"== sweep\n{self.log.read_text(errors='replace')[-4000:]}\n{logs}{self.cluster.tell()}"


def wait(condition, what, seconds=300):
    return daemons.wait_for(condition, seconds, what, 0.1)


def scripted_outcomes(sweep):
    """Ten scripts, one after another; crashes are tried twice, everything else once."""
    assert sweep.start("run", str(sweep.grid)).wait(END_SECONDS) == 1
    assert sweep.outcomes() == EXPECTED, sweep.outcomes()


def killed_while_running(sweep):
    """kill -9 in the middle: the job runs on, and the next run takes up the same one."""
    sweep.kill_run_when(lambda: sweep.has_results(2), "two results")
    before = sweep.jobs()
    assert len(before) == 1 and "r" in before[0][2], before
    assert sweep.start("resume").wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 8, sweep.outcomes()
    assert len(sweep.rows("select id from allocation")) == 1, sweep.rows("select * from allocation")
    twice = sweep.rows("select entry, count(*) from attempt group by entry having count(*) > 1")
    assert not twice, f"trials that ran twice: {twice}"


def killed_while_waiting(sweep):
    """kill -9 while the job waits for its slots: the next run finds it and submits nothing."""
    blocker = sweep.cluster.run("qsub", "-terse", "-b", "y", "-pe", gridengine.ENVIRONMENT, "4", "-o", "/dev/null", "-j", "y",
                                "/bin/sleep", "1000")
    try:
        wait(lambda: ("r",) == tuple(job[2] for job in sweep.cluster.jobs()), "the other job runs")
        sweep.kill_run_when(lambda: [job for job in sweep.jobs() if job[2] == "qw"], "a waiting job")
    finally:
        sweep.cluster.run("qdel", blocker)
    assert sweep.start("resume").wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 2 and len(sweep.rows("select id from allocation")) == 1, sweep.outcomes()


def deleted_from_outside(sweep):
    """qdel of the job: what ran is cancelled, not lost; another job finishes the sweep."""
    run = sweep.start("run", str(sweep.grid))
    wait(lambda: sweep.has_results(1), "one result")
    sweep.cluster.run("qdel", sweep.jobs()[0][0])
    assert run.wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()
    assert len(sweep.rows("select id from allocation")) >= 2, sweep.rows("select * from allocation")
    outcomes = {outcome for (outcome,) in sweep.rows("select distinct outcome from result")}
    assert outcomes <= {0, 8}, f"ok and cancelled expected: {outcomes}"


def master_away(sweep):
    """The master is killed in the middle and comes back: no trial is lost, and no second job is submitted."""
    run = sweep.start("run", str(sweep.grid))
    wait(lambda: sweep.has_results(1), "one result")
    sweep.cluster.daemons["sge_qmaster"].kill()
    wait(lambda: sweep.has_results(3), "trials go on without it")
    sweep.cluster.start_master()
    assert run.wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 8 and len(sweep.rows("select id from allocation")) == 1, sweep.outcomes()


def cleaned_up(sweep):
    """An orchestrator that is gone for good: clean shows its job, and ends it when told."""
    sweep.kill_run_when(lambda: sweep.has_results(1), "one result")
    clean = [*sweep.cluster.inside(), str(sweep.program), "clean", "--db", str(sweep.db)]
    shown = subprocess.run(clean, env=sweep.environment, capture_output=True, text=True, check=True).stdout
    (number, *_), = sweep.jobs()
    assert number in shown, (shown, number)
    subprocess.run([*clean, "--yes"], env=sweep.environment, capture_output=True, check=True)
    assert not sweep.jobs(), sweep.jobs()
    assert sweep.start("resume").wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()


CASES = {
    scripted_outcomes: {"trials": 10, "fake": "seq_len - 64"},
    killed_while_running: {"trials": 8, "step_ms": 400},
    killed_while_waiting: {"trials": 2},
    deleted_from_outside: {"trials": 6, "step_ms": 400},
    master_away: {"trials": 8, "step_ms": 400},
    cleaned_up: {"trials": 6, "step_ms": 400},
}


def main():
    bin_dir, rank, chosen = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    if lacking := gridengine.missing():
        print(f"skipped: {', '.join(lacking)} not here; scripts/setup test installs Grid Engine, and the test needs root")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="sweep-gridengine-") as folder:
        root = pathlib.Path(folder)
        with gridengine.Cluster(root / "cluster") as cluster:
            for case, settings in CASES.items():
                if chosen and case.__name__ not in chosen:
                    continue
                sweep = Sweep(bin_dir, rank, cluster, root / case.__name__, **settings)
                try:
                    case(sweep)
                    sweep.check_end()
                except BaseException:
                    print(sweep.tell(), flush=True)
                    raise
                print(f"{case.__name__}: good", flush=True)


if __name__ == "__main__":
    main()
