#!/usr/bin/env python3
"""accounting_test.py BIN FAKE_RANK: sweeps on a real Slurm that keeps accounts, forgets jobs soon and preempts them.

What squeue no longer knows sacct tells, and nothing is concluded while neither does; a user's limit on jobs is waited for;
preempted jobs burn no retry, however often it happens. Further words choose cases.
"""
import getpass
import os
import pathlib
import signal
import tempfile

import processes
from cluster import accounting, slurm
from slurm_sweep import END_SECONDS, LAUNCH, Sweep, chosen, folder_of, play, programs, wait

PREEMPTIONS = 4  # more than the three allocations in a row that may be lost
OPTIONS = ["MinJobAge=2", "PreemptType=preempt/partition_prio", "PreemptMode=CANCEL",
           "PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=INFINITE"]


def told_by_sacct(sweep):
    """Orchestrator and agent are gone without a last message, and squeue has forgotten the job: sacct says that it was cancelled."""
    sweep.run_and_kill()
    (number, _, name, *_), = sweep.jobs()
    for agent in processes.by_role(sweep.mark)["agent"]:
        os.kill(agent.pid, signal.SIGSTOP)  # SIGTERM it will not see, and Slurm kills it
    sweep.cluster.run("scancel", number)
    wait(lambda: not sweep.cluster.run("scontrol", "show", "job", number, check=False), f"Slurm forgets job {number}")
    state, = accounting.states(sweep.cluster, name)
    sweep.cluster.daemons["slurmdbd"].kill()
    second = sweep.start("resume")
    try:
        wait(lambda: "sacct" in sweep.log.read_text(), "it says that sacct does not answer")
        assert not sweep.rows("select 1 from allocation where ended_unix_ns is not null"), "the database has no end of the allocation"
    finally:
        sweep.cluster.start_accounting()
    sweep.open_gate()
    assert second.wait(END_SECONDS) == 0, sweep.log.read_text()
    assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()
    reason, = sweep.rows("select end_reason from allocation order by created_unix_ns")[0]
    assert f"Slurm job {number} ended without its agent's last message: {state}" in reason, (reason, state)


def takes_no_more(sweep):
    """The user may have no further job: the run waits and says why, and goes on when he may."""
    sweep.cluster.run("sacctmgr", "-i", "modify", "user", getpass.getuser(), "set", "maxsubmitjobs=0")
    sweep.cluster.enforce_limits(True)
    run = sweep.start("run", str(sweep.grid))
    try:
        wait(lambda: "Slurm refuses further jobs for now (AssocMaxSubmitJobLimit;" in sweep.log.read_text(), "it says so")
    finally:
        sweep.cluster.enforce_limits(False)
    assert run.wait(END_SECONDS) == 0, sweep.log.read_text()
    assert sweep.outcomes() == ["ok"] * 2 and len(sweep.rows("select 1 from allocation")) == 1, sweep.log.read_text()


def preempted(sweep):
    """A job of more weight takes the node, again and again, before one result: the sweep waits and goes on."""
    run = sweep.start("run", str(sweep.grid))
    for count in range(1, PREEMPTIONS + 1):
        wait(lambda: sweep.db.exists() and sweep.rows("select count(*) from sqlite_master where name = 'attempt'")[0][0]
             and len(sweep.rows("select 1 from attempt where started_unix_ns is not null")) == count, f"attempt {count} runs")
        sweep.cluster.run("sbatch", "-p", "urgent", "-N", "2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1")
        wait(lambda: len(sweep.rows("select 1 from result")) == count, f"attempt {count} was cancelled")
    sweep.open_gate()
    assert run.wait(END_SECONDS) == 0, sweep.log.read_text()
    assert sweep.outcomes() == ["ok"], sweep.outcomes()
    verdicts = [outcome for (outcome,) in sweep.rows("select outcome from result order by attempt")]
    assert verdicts == [8] * PREEMPTIONS + [0], f"cancelled each time, then ok: {verdicts}"
    names = [f"sweep-{name}" for (name,) in sweep.rows("select id from allocation order by created_unix_ns")]
    wait(lambda: accounting.states(sweep.cluster, names[-1]) == ["COMPLETED"], "the last job's end is in the accounts")
    states = [accounting.states(sweep.cluster, name) for name in names]
    assert states == [["PREEMPTED"]] * PREEMPTIONS + [["COMPLETED"]], states


def main():
    bin_dir, rank = programs(slurm.missing(accounting.PROGRAMS))
    launch = LAUNCH.replace("max_allocations: 2", "max_allocations: 1")
    with tempfile.TemporaryDirectory(prefix="sweep-accounts-") as root, \
            slurm.Cluster(pathlib.Path(root) / "cluster", nodes=2, options=OPTIONS, with_accounting=True) as cluster:
        for case, trials, gated in chosen([(told_by_sacct, 6, True), (takes_no_more, 2, False), (preempted, 1, True)]):
            play(case, Sweep(bin_dir, rank, cluster, folder_of(root, case), trials, gated=gated, launch=launch))


if __name__ == "__main__":
    main()
