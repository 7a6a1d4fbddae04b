#!/usr/bin/env python3
"""orchestrator_job_test.py BIN FAKE_RANK: an orchestrator that is a Slurm job (--as-job) is ended by Slurm in every way, where Slurm
finds a job's processes by their parents (proctrack/linuxproc: all of them get the signal) and, as root, by their cgroup.

Whatever ended it, no attempt is cancelled, and the next orchestrator takes the same allocation over: the job's next start, or a
`resume` on another host. As root every node has a host name of its own. Further words choose cases.
"""
import os
import pathlib
import tempfile

from cluster import slurm
from slurm_sweep import END_SECONDS, LAUNCH, Sweep, chosen, folder_of, orchestrators, programs, told, wait

CANCELLED = 8  # schema/outcome.h
OPTIONS = ["PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE",
           "PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=INFINITE PreemptMode=OFF"]
TRIALS = 14


def handed_over(sweep):
    """The orchestrator's job, once it has two results; one allocation runs."""
    assert sweep.start("run", str(sweep.grid), "--as-job", "main").wait(END_SECONDS) == 0, sweep.log.read_text()
    sweep.let_pass(2)
    wait(lambda: sweep.has_results(2), "two results")
    (number, *_), = orchestrators(sweep)
    return number


def nothing_lost(sweep):
    """The sweep is done, after its gate was opened."""
    assert sweep.outcomes() == ["ok"] * TRIALS, sweep.outcomes()
    again = sweep.rows("select outcome, count(*) from result where outcome <> 0 group by outcome")
    assert not again, f"(outcome, attempts) that were not ok, {CANCELLED} is cancelled: {again}"
    assert len(sweep.jobs()) == 1, f"one allocation, taken over: {sweep.jobs()}"


def starts_again(sweep, number):
    wait(lambda: orchestrators(sweep)[0][1] == "PENDING", f"the orchestrator waits: {orchestrators(sweep)}")
    sweep.cluster.run("scontrol", "update", f"jobid={number}", "StartTime=now+2")  # Slurm itself waits two minutes
    sweep.open_gate()
    wait(lambda: orchestrators(sweep)[0][1] in ("COMPLETED", "FAILED"), f"the sweep ends: {sweep.cluster.jobs()}", END_SECONDS)
    nothing_lost(sweep)


def cancelled(sweep):
    """scancel of the job; `resume` from the head node asks Slurm, and takes over."""
    sweep.cluster.run("scancel", handed_over(sweep))
    wait(lambda: orchestrators(sweep)[0][1] == "CANCELLED", f"Slurm has ended it: {orchestrators(sweep)}")
    sweep.open_gate()
    assert sweep.start("resume").wait(END_SECONDS) == 0, sweep.log.read_text()
    nothing_lost(sweep)


def cancelled_while_watched(sweep):
    """A `resume` that watches asks Slurm by itself, and takes over."""
    number = handed_over(sweep)
    watcher = sweep.start("resume")
    wait(lambda: "watching it" in sweep.log.read_text(), "it watches")
    sweep.cluster.run("scancel", number)
    wait(lambda: orchestrators(sweep)[0][1] == "CANCELLED", f"Slurm has ended it: {orchestrators(sweep)}")
    sweep.open_gate()
    assert watcher.wait(END_SECONDS) == 0, sweep.log.read_text()
    nothing_lost(sweep)


def finished_elsewhere(sweep):
    """The job waits in the queue when a `resume` has finished the sweep: it is cancelled."""
    number = handed_over(sweep)
    sweep.cluster.run("scontrol", "requeuehold", number)
    wait(lambda: orchestrators(sweep)[0][1] == "PENDING", f"the orchestrator waits: {orchestrators(sweep)}")
    sweep.open_gate()
    assert sweep.start("resume").wait(END_SECONDS) == 0, sweep.log.read_text()
    wait(lambda: orchestrators(sweep)[0][1] == "CANCELLED", f"nothing waits any more: {orchestrators(sweep)}")
    nothing_lost(sweep)


def requeued(sweep):
    number = handed_over(sweep)
    sweep.cluster.run("scontrol", "requeue", number)
    starts_again(sweep, number)


def preempted(sweep):
    """A job of more weight takes its node."""
    number = handed_over(sweep)
    node = sweep.cluster.run("squeue", "-h", "-j", number, "-o", "%N")
    sweep.cluster.run("sbatch", "-p", "urgent", "-w", node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 2")
    starts_again(sweep, number)


def main():
    bin_dir, rank = programs(slurm.missing())
    mode = "netns" if os.geteuid() == 0 else "plain"
    tracks = ["linuxproc", "cgroup"] if os.geteuid() == 0 and slurm.FREEZER.is_dir() else ["linuxproc"]
    launch = LAUNCH.replace("max_allocations: 2", "max_allocations: 1").replace("max_nodes: 2", "max_nodes: 1")
    for track in tracks:
        with tempfile.TemporaryDirectory(prefix="sweep-asjob-") as root, \
                slurm.Cluster(pathlib.Path(root) / "cluster", nodes=2, mode=mode, options=OPTIONS, track=track) as cluster:
            for case, in chosen([(cancelled,), (cancelled_while_watched,), (finished_elsewhere,), (requeued,), (preempted,)]):
                with told(Sweep(bin_dir, rank, cluster, folder_of(root, case), TRIALS, gated=True, launch=launch)) as sweep:
                    case(sweep)
                    sweep.check_end()
                    print(f"{track}, {case.__name__}: {TRIALS} trials, nothing lost", flush=True)


if __name__ == "__main__":
    main()
