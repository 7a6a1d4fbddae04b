#!/usr/bin/env python3
"""gridengine_test.py BIN FAKE_RANK: sweeps on a real Grid Engine of this machine, with ranks that play scripts instead of training.

Each scripted outcome comes back as itself; an orchestrator killed with -9 finds its job again, running or waiting; a job that is
deleted from outside burns no retry; a master that is away for a while concludes nothing; and afterwards no process and no job is
left. Further words choose cases.
"""
import os
import pathlib
import signal
import tempfile

import database
import processes
import slurm_sweep
from cluster import gridengine
from slurm_sweep import wait

END_SECONDS = 600
EXPECTED = ["ok", "oom", "crash", "crash", "unsupported", "timeout", "ok", "ok", "ok", "crash"]  # index: number of the script in fake_trial.cpp

LAUNCH = "queue: main.q, parallel_environment: smp, pe_slots: 2, max_allocations: 1, poll_seconds: 1, signal_seconds: 20"


class Sweep(slurm_sweep.Sweep):
    launcher = "gridengine"

    def kill_run_when(self, condition, what):
        """Starts a run and kills it with -9 when the condition holds."""
        first = self.start("run", str(self.grid))
        wait(condition, what)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()

    def jobs(self):
        """Jobs in the queue or running that are this sweep's allocations."""
        return [job for job in self.cluster.jobs() if job[1].startswith("sweep-a")]

    def check_end(self):
        processes.wait_until_none(self.mark, 90)
        wait(lambda: not self.cluster.jobs(), f"no job is left: {self.cluster.jobs()}")
        wait(lambda: not self.cluster.of_jobs(), f"no process of a job is left: {self.cluster.of_jobs()}")
        database.check(self.db)
        assert not self.rows("select id from allocation where ended_unix_ns is null"), "an allocation is still open"

    def tell(self):
        return super().tell() + self.cluster.tell()


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
    shown = sweep.say("clean")
    (number, *_), = sweep.jobs()
    assert number in shown, (shown, number)
    sweep.say("clean", "--yes")
    assert not sweep.jobs(), sweep.jobs()
    assert sweep.start("resume").wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()


CASES = [
    (scripted_outcomes, 10, {"fake": "seq_len - 64"}),
    (killed_while_running, 8, {"step_ms": 400}),
    (killed_while_waiting, 2, {}),
    (deleted_from_outside, 6, {"step_ms": 400}),
    (master_away, 8, {"step_ms": 400}),
    (cleaned_up, 6, {"step_ms": 400}),
]


def main():
    bin_dir, rank = slurm_sweep.programs(gridengine.missing())  # scripts/setup test installs Grid Engine, and the test needs root
    with tempfile.TemporaryDirectory(prefix="sweep-gridengine-") as root, gridengine.Cluster(pathlib.Path(root) / "cluster") as cluster:
        for case, trials, words in slurm_sweep.chosen(CASES):
            folder = pathlib.Path(root) / case.__name__
            with slurm_sweep.told(Sweep(bin_dir, rank, cluster, folder, trials, launch=LAUNCH, **words)) as sweep:
                case(sweep)
                sweep.check_end()
            print(f"{case.__name__}: good", flush=True)


if __name__ == "__main__":
    main()
