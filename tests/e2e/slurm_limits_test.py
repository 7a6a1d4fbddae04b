#!/usr/bin/env python3
"""slurm_limits_test.py BIN FAKE_RANK: sweeps on a real Slurm whose paths, limits and folders are unkind.

Paths that a shell or sbatch could misread are passed on unchanged; idle nodes are used while trials wait; an agent
starts nothing that its time limit would cut off; a time that the partition does not allow is found before anything is
submitted; an allocation's folder that a user removes is named as the cause; a job that Slurm starts again before its
agent spoke is not waited for without end; and killed agents leave nothing in /dev/shm.
Further words choose cases.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from cluster import proc, slurm
from slurm_sweep import END_SECONDS, Sweep, chosen, folder_of, play, programs, wait

HOSTILE = "it's \"$(touch OWNED)`touch OWNED`\" 50%j back\\slash;#"
CANCELLED = 8


def say(sweep, *words, db=None):
    return subprocess.run([*sweep.cluster.inside(), str(sweep.sweep), *words, "--db", str(db or sweep.db)],
                          env=sweep.environment, capture_output=True, text=True, cwd=sweep.folder)


def hostile_paths(sweep):
    """The database lies in a folder of that name: the job's log, its mailbox and its agent's words find it."""
    sweep.run(expected_code=0)
    logs = list(sweep.folder.glob("r.db.spool/*/slurm.log"))
    assert logs, list(sweep.folder.rglob("*"))
    broken = sweep.folder / "a\ntouch OWNED;#.db"
    for words in (["plan", sweep.grid, "--sbatch"], ["run", sweep.grid, "--rank", sweep.rank]):
        done = say(sweep, *map(str, words), db=broken)
        assert done.returncode == 2 and "control character" in done.stderr, (done.returncode, done.stdout, done.stderr)
        assert "#SBATCH" not in done.stdout, done.stdout
    assert not list(sweep.folder.parent.rglob("OWNED")), "a path was run"


def idle_nodes(sweep):
    """Four idle nodes, one-node trials: several allocations run side by side, though the work is far below half an hour. No trial
    ends before they do."""
    run = sweep.start("run", str(sweep.grid))
    wait(lambda: sweep.has_results(0) and [job[1] for job in sweep.jobs()].count("RUNNING") >= 3, "three jobs run side by side")
    assert sweep.has_results(0) and not sweep.has_results(1), sweep.outcomes()
    sweep.open_gate()
    assert run.wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * len(sweep.outcomes()), sweep.outcomes()


def short_limit(sweep):
    """One minute for each job, of which its agent may use 20 seconds: it starts no attempt that they would cut off, as far as it
    can know: one that is cut off must have run for longer than every one before it in the same job."""
    sweep.run(expected_code=0)
    longest = {}
    for allocation, outcome, seconds in sweep.rows(
            "select a.allocation, r.outcome, (a.ended_unix_ns - a.started_unix_ns) / 1e9 from attempt a "
            "join result r on r.attempt = a.id where a.started_unix_ns is not null order by a.started_unix_ns"):
        before = longest.get(allocation, 0)
        assert outcome != CANCELLED or seconds > before, f"cut off after {seconds} s, though others had taken {before} s"
        longest[allocation] = max(before, seconds)
    assert len(longest) >= 2, "one job sufficed: nothing was tested"


def longer_than_partition(sweep):
    """The partition allows ten minutes: half an hour is refused at once; what no `time` bounds is asked for within them."""
    text = sweep.grid.read_text()
    sweep.grid.write_text(text.replace("poll_seconds: 1", 'poll_seconds: 1, time: "00:30:00"'))
    for words in (["plan", sweep.grid, "--sbatch"], ["run", sweep.grid, "--rank", sweep.rank]):
        done = say(sweep, *map(str, words))
        assert done.returncode == 2 and "partition small" in done.stderr, (done.returncode, done.stderr)
    assert not sweep.db.exists() or not sweep.rows("select id from allocation"), "something was submitted"
    sweep.grid.write_text(text)
    done = say(sweep, "plan", str(sweep.grid), "--sbatch")
    asked = re.search(r"#SBATCH --time=00:(\d\d):00", done.stdout)
    assert done.returncode == 0 and asked and int(asked[1]) <= 10, (done.stdout, done.stderr)
    sweep.run(expected_code=0)


def folder_removed(sweep):
    """Named as the cause; the trials run again in another allocation."""
    run = sweep.start("run", str(sweep.grid))
    sweep.let_pass(1)
    wait(lambda: sweep.has_results(1), "one result")
    (first,) = sweep.rows("select spool from allocation where ended_unix_ns is null limit 1")[0]
    shutil.rmtree(first)
    sweep.open_gate()
    assert run.wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * len(sweep.outcomes()), sweep.outcomes()
    reasons = [text for (text,) in sweep.rows("select end_reason from allocation")]
    assert any("was removed or replaced" in (reason or "") for reason in reasons), reasons


def every_node_at_once(sweep):
    """An allocation of four nodes: its step is over when its job is, so no node is still completing afterwards."""
    sweep.run(expected_code=0)
    log = "".join(path.read_text(errors="replace") for path in sweep.folder.glob("r.db.spool/*/slurm.log"))
    daemon = "".join(path.read_text(errors="replace") for path in (sweep.cluster.folder / "log").glob("slurmd.*.log"))
    assert "Failed to send MESSAGE_TASK_EXIT" not in log + daemon, log[-2000:]


def killed_agents(sweep):
    """kill -9 of both processes of an agent: its folder on memory goes with the next agent on that machine."""
    run = sweep.start("run", str(sweep.grid))
    home = pathlib.Path(f"/dev/shm/sweep-{os.geteuid()}")
    allocation = wait(lambda: sweep.db.exists() and sweep.rows("select name from sqlite_master where name = 'allocation'")
                      and any(list(home.glob(f"{name}-*/[0-9]*")) for (name,) in sweep.rows("select id from allocation"))
                      and sweep.rows("select id from allocation")[0][0], "ranks of an allocation")
    token = f"SWEEP_ATTEMPT={allocation}-".encode()
    for pid in proc.pids():
        if token in proc.content(pid, "environ") and b"sweep-agent" in proc.content(pid, "cmdline"):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    sweep.open_gate()
    assert run.wait(END_SECONDS) == 0
    left = [each for (name,) in sweep.rows("select id from allocation") for each in home.glob(f"{name}-*")]
    assert not left, left


def started_again(sweep):
    """Put back before its agent spoke, with a later time of submission: its script starts nothing then. The next orchestrator
    sees that it is over, and another job does the work."""
    run = sweep.start("run", str(sweep.grid))
    wait(lambda: "waits: BeginTime" in sweep.log.read_text(), "the job is known")
    (number, *_), = sweep.jobs()
    first = shown(sweep, number)["SubmitTime"]
    sweep.cluster.run("scontrol", "update", f"jobid={number}", "StartTime=now")
    wait((sweep.folder / "once").exists, "its prologue runs")
    run.kill()
    run.wait()
    sweep.cluster.run("scontrol", "update", f"jobid={number}", "Requeue=1")
    sweep.cluster.run("scontrol", "requeue", number)
    wait(lambda: shown(sweep, number)["JobState"] == "PENDING", "it waits again")
    assert shown(sweep, number)["SubmitTime"] != first
    sweep.cluster.run("scontrol", "update", f"jobid={number}", "StartTime=now+2")  # Slurm itself waits two minutes
    second = sweep.start("resume")
    wait(lambda: len(sweep.jobs()) == 2, "another job is asked for")
    other, = (job[0] for job in sweep.jobs() if job[0] != number)
    sweep.cluster.run("scontrol", "update", f"jobid={other}", "StartTime=now")
    assert second.wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * len(sweep.outcomes()), sweep.outcomes()
    wait(lambda: [job[1] for job in sweep.jobs()] == ["COMPLETED"] * 2, "Slurm says of both jobs that they are over")


def shown(sweep, number):
    """Slurm's answer about a job."""
    return dict(word.split("=", 1) for word in sweep.cluster.run("scontrol", "show", "job", "--oneliner", number).split() if "=" in word)


def main():
    bin_dir, rank = programs(slurm.missing())
    mode = os.environ.get("SWEEP_CLUSTER_MODE") or "plain"
    one = "partition: main, max_nodes: 1, max_allocations: 1, poll_seconds: 1"
    with tempfile.TemporaryDirectory(prefix="sweep-limits-") as root, \
            slurm.Cluster(pathlib.Path(root) / "cluster", nodes=4, mode=mode) as cluster:
        for case, trials, words in chosen([
                (hostile_paths, 2, {"launch": one}),
                (idle_nodes, 60, {"gated": True, "launch": "partition: main, poll_seconds: 1"}),
                (longer_than_partition, 2, {"launch": "partition: small, poll_seconds: 1"}),
                (folder_removed, 8, {"gated": True, "launch": one}),
                (every_node_at_once, 4, {"step_ms": 100, "nodes": (4,), "launch": "partition: main, poll_seconds: 1"}),
                (started_again, 4, {"step_ms": 100, "launch": one + ', extra: ["--begin=now+1hour"], prologue: ["mkdir once && sleep 600"]'}),
                (killed_agents, 8, {"gated": True, "launch": one}),
                (short_limit, 14, {"step_ms": 600, "launch": one + ', time: "00:01:00", signal_seconds: 40'})]):
            parent = pathlib.Path(root) / (HOSTILE if case is hostile_paths else "plain")
            parent.mkdir(exist_ok=True)
            sweep = Sweep(bin_dir, rank, cluster, folder_of(parent, case), trials, **words)
            sweep.log.touch()
            play(case, sweep)


if __name__ == "__main__":
    main()
