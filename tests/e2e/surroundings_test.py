#!/usr/bin/env python3
"""surroundings_test.py BIN FAKE_RANK: a sweep on a real Slurm from shells whose environment changes what Slurm's commands do.

sbatch takes SBATCH_* before the script's own directives, scancel and squeue narrow what they do by SCANCEL_* and SQUEUE_*, times are
written by SLURM_TIME_FORMAT and TZ: none of it may lose, repeat or leave a job. Further words choose cases.
"""
import os
import pathlib
import signal
import tempfile

import slurm_sweep
from cluster import slurm

SUBMITTING = {"SBATCH_JOB_NAME": "mine", "SBATCH_ARRAY_INX": "0-2", "SBATCH_TIMELIMIT": "1", "SBATCH_PARTITION": "nowhere", "SBATCH_REQUEUE": "1", "SBATCH_WAIT": "1",
              "SBATCH_OUTPUT": "/dev/null", "SBATCH_EXPORT": "NONE", "SLURM_MEM_PER_CPU": "100",
              "SLURM_MEM_PER_NODE": "100", "SLURM_JOB_ID": "1", "SLURM_NNODES": "7"}
ASKING = {"SQUEUE_USERS": "daemon", "SQUEUE_PARTITION": "elsewhere", "SQUEUE_FORMAT": "%u", "SQUEUE_STATES": "FAILED",
          "SCANCEL_INTERACTIVE": "1", "SCANCEL_STATE": "RUNNING", "SCANCEL_PARTITION": "elsewhere", "SCONTROL_FUTURE": "1"}
# In the rank program's place: says what the prologue of the job's script gave it.
TELLING = """#!/bin/sh
echo "${PROLOGUE:-nothing}" >> {told}
exec {rank} "$@"
"""


def submits_as_the_grid_says(sweep):
    """The grid's words stand, whatever SBATCH_* is around: one job of our name for all trials, ours to end."""
    sweep.environment.update(SUBMITTING)
    before = sweep.cluster.jobs()
    told, telling = sweep.folder / "told", sweep.folder / "telling"
    telling.write_text(TELLING.replace("{told}", str(told)).replace("{rank}", str(sweep.rank)))
    telling.chmod(0o755)
    sweep.rank = telling
    code = sweep.start("run", str(sweep.grid), "--on", "slurm").wait(slurm_sweep.END_SECONDS)
    assert code == 0, f"exit {code}\n{sweep.log.read_text()[-4000:]}"
    assert sweep.outcomes() == ["ok"] * 8, sweep.outcomes()
    assert len(sweep.cluster.jobs()) == len(before) + 1 and len(sweep.jobs()) == 1, sweep.cluster.jobs()
    heard = told.read_text().split()
    assert len(heard) >= 2 and set(heard) == {"here"}, f"not every node's ranks have what the prologue set: {heard}"


def cancels_what_waits(sweep):
    """SCANCEL_* and SQUEUE_* around: after Ctrl-C no job is left in the queue."""
    sweep.environment.update(ASKING)
    for node in sweep.cluster.nodes:
        sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        run = sweep.start("run", str(sweep.grid))
        slurm_sweep.wait(lambda: any(job[1] == "PENDING" for job in sweep.cluster.jobs()), "a waiting job")
        os.kill(run.pid, signal.SIGINT)
        run.wait(60)
        assert sweep.jobs() and {job[1] for job in sweep.jobs()} == {"CANCELLED"}, sweep.jobs()
    finally:
        for node in sweep.cluster.nodes:
            sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=resume")


def resumes_in_another_time_zone(sweep):
    """Started here, killed, taken up by a shell that writes times in its own way: the same job, nothing twice."""
    sweep.environment.update({"SLURM_TIME_FORMAT": "relative", "TZ": "America/New_York"})
    sweep.run_and_kill(passed=2, results=2)
    before = sweep.jobs()
    sweep.environment.update({"SLURM_TIME_FORMAT": "%s", "TZ": "Asia/Tokyo"})
    sweep.open_gate()
    code = sweep.start("resume").wait(slurm_sweep.END_SECONDS)
    assert code == 0, f"resume ended with {code}"
    assert sweep.outcomes() == ["ok"] * 8, sweep.outcomes()
    assert [job[0] for job in sweep.jobs()] == [job[0] for job in before], f"{before} became {sweep.jobs()}"


def main():
    bin_dir, rank = slurm_sweep.programs(slurm.missing())
    one_job = slurm_sweep.LAUNCH.replace("max_allocations: 2", "max_allocations: 1")
    with tempfile.TemporaryDirectory(prefix="sweep-around-") as root, slurm.Cluster(pathlib.Path(root) / "cluster", nodes=2) as cluster:
        for case, trials, words in slurm_sweep.chosen([
                (submits_as_the_grid_says, 4, {"launch": one_job + ", prologue: ['export PROLOGUE=here']", "nodes": (1, 2)}),
                (cancels_what_waits, 2, {"launch": one_job}),
                (resumes_in_another_time_zone, 8, {"gated": True, "launch": one_job})]):
            sweep = slurm_sweep.Sweep(bin_dir, rank, cluster, slurm_sweep.folder_of(root, case), trials, **words)
            slurm_sweep.play(case, sweep)


if __name__ == "__main__":
    main()
