#!/usr/bin/env python3
"""slurm_test.py BIN FAKE_RANK: sweeps on a real Slurm of this machine, with ranks that play scripts instead of training.

Each scripted outcome comes back as itself; an orchestrator killed with -9 finds its job again, running or waiting; a job
cancelled from outside or at its time limit burns no retry; and afterwards no process, no job and no drained node is left.
SWEEP_CLUSTER_MODE=netns (root) gives every node its own network, host name and process ids. Further words choose cases.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import slurm
from slurm_sweep import END_SECONDS, LAUNCH, Sweep, chosen, folder_of, orchestrators, play, programs, wait

# A trainer of a user's own: it reports its steps by hand.
TRAINER = """
import os, sweep_trial
for _ in range(4):
    sweep_trial.step(tokens=1)
assert os.environ["WORLD_SIZE"] == "2"
"""

EXPECTED = ["ok", "oom", "crash", "crash", "unsupported", "timeout", "ok", "ok", "ok", "crash"]  # index: number of the script in fake_trial.cpp


def scripted_outcomes(sweep):
    """Ten scripts on two nodes; crashes are tried twice, everything else once."""
    sweep.run(expected_code=1)
    assert sweep.outcomes() == EXPECTED, sweep.outcomes()
    tries = dict(sweep.rows("select r.seq_len, p.attempts from results r join plan_entry p on p.trial = "
                            "(select key from trial where id = r.trial)"))
    assert [tries[64 + i] for i in range(10)] == [2 if e == "crash" else 1 for e in EXPECTED], tries


def killed_while_running(sweep):
    """kill -9 in the middle: the job runs on, and the next run takes up the same one."""
    sweep.run_and_kill(passed=4, results=2)  # two trials of two ranks
    before = sweep.jobs()
    assert [job[1] for job in before] == ["RUNNING"], before
    sweep.open_gate()
    code = sweep.start("resume").wait(END_SECONDS)
    assert code == 0, f"resume ended with {code}"
    assert sweep.outcomes() == ["ok"] * 8, sweep.outcomes()
    assert [job[0] for job in sweep.jobs()] == [before[0][0]], f"{before} became {sweep.jobs()}"
    twice = sweep.rows("select entry, count(*) from attempt group by entry having count(*) > 1")
    assert not twice, f"trials that ran twice: {twice}"


def killed_while_waiting(sweep):
    """kill -9 while the job waits for a node: the next run finds it by its name and submits nothing."""
    for node in sweep.cluster.nodes:
        sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        first = sweep.start("run", str(sweep.grid))
        wait(lambda: sweep.db.exists() and any(job[1] == "PENDING" for job in sweep.cluster.jobs()), "a waiting job")
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    finally:
        for node in sweep.cluster.nodes:
            sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
    code = sweep.start("resume").wait(END_SECONDS)
    assert code == 0, f"resume ended with {code}"
    assert sweep.outcomes() == ["ok"] * 2 and len(sweep.jobs()) == 1, (sweep.outcomes(), sweep.jobs())


def cancelled_from_outside(sweep):
    """scancel by a user: what ran is cancelled, not lost; another job finishes the sweep."""
    run = sweep.start("run", str(sweep.grid))
    sweep.let_pass(1)
    wait(lambda: sweep.has_results(1), "one result")
    for job in sweep.jobs():
        sweep.cluster.run("scancel", job[0])
    sweep.open_gate()
    assert run.wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()
    assert len(sweep.jobs()) >= 2, sweep.jobs()
    verdicts = {outcome for (outcome,) in sweep.rows("select distinct outcome from result")}
    assert verdicts <= {0, 8}, f"ok and cancelled expected: {verdicts}"


def out_of_time(sweep):
    """The agent ends before Slurm's limit: no job times out, and what did not fit goes into the next one."""
    sweep.run(expected_code=0)
    assert sweep.outcomes() == ["ok"] * 7, sweep.outcomes()
    wait(lambda: all(job[1] == "COMPLETED" for job in sweep.jobs()), "Slurm has cleaned up after the last job")
    assert len(sweep.jobs()) >= 2 and all(job[1] == "COMPLETED" for job in sweep.jobs()), sweep.jobs()
    assert all(job[4] == "1:00" for job in sweep.jobs()), sweep.jobs()


def over_two_nodes(sweep):
    """Trials of one and of two nodes in one allocation of two: the small ones run side by side."""
    sweep.run(expected_code=0)
    assert sweep.outcomes() == ["ok"] * 8, sweep.outcomes()
    assert len(sweep.jobs()) == 1 and " of 2 nodes runs: " in sweep.log.read_text(), sweep.jobs()
    spans = sweep.rows("select a.started_unix_ns, a.ended_unix_ns, a.world from attempt a order by a.started_unix_ns")
    beside = [1 for one, other in zip(spans, spans[1:]) if other[0] < one[1]]
    assert beside, f"nothing ran side by side: {spans}"
    assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:]) if 2 in (one[2], other[2])), spans


def replaced_program(sweep):
    """The agent's file is gone by the time the agent starts its peers, as after an upgrade: a command still runs on both nodes."""
    programs = sweep.folder / "bin"
    programs.mkdir()
    for name in ("sweep", "sweep-agent"):
        shutil.copy2(sweep.sweep.with_name(name), programs)
    sweep.sweep = programs / "sweep"
    (sweep.folder / "train.py").write_text(TRAINER)
    # exec as a function of the job's script: it starts the agent from an open file whose name is gone.
    started = 'exec() { { rm "$1"; builtin exec /proc/self/fd/9 "${@:2}"; } 9<"$1"; }'
    sweep.grid.write_text(json.dumps({
        "name": sweep.name, "workload": {"command": [sys.executable, "train.py", "{seq_len}"]}, "base": {"hardware": "cpu", "nodes": 2, "dp": 2},
        "grid": {"seq_len": [64, 65]}, "measure": {"warmup_steps": 1, "steps": 3}, "limits": {"trial_seconds": 120},
        "launch": {"slurm": {"partition": "main", "max_nodes": 2, "max_allocations": 1, "poll_seconds": 1, "prologue": [started]}}}))
    sweep.run(expected_code=0)
    assert sweep.outcomes() == ["ok"] * 2 and len(sweep.jobs()) == 1, (sweep.outcomes(), sweep.jobs())
    assert not (programs / "sweep-agent").exists(), "the file was there"
    ranks = sweep.rows("select attempt, count(*) from rank_record group by attempt")
    assert [count for _, count in ranks] == [2, 2], ranks


def in_a_standing_allocation(sweep):
    """salloc, then sweep: a step of the allocation instead of a job; killed with -9, the next run finds its step again."""
    job = sweep.cluster.run("bash", "-c", "salloc --no-shell -N1 -J standing 2>&1").split()[-1]
    try:
        sweep.run_and_kill("--jobid", job)
        sweep.open_gate()
        assert sweep.start("resume").wait(END_SECONDS) == 2, "which allocation it was must be said"
        assert sweep.start("resume", "--jobid", job).wait(END_SECONDS) == 0
        assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()
        assert not sweep.jobs() and len(sweep.rows("select id from allocation")) == 1, sweep.jobs()
        assert [j[1] for j in sweep.cluster.jobs() if j[0] == job] == ["RUNNING"], "the allocation is not ours to end"
    finally:
        sweep.cluster.run("scancel", job)


def in_one_of_two_nodes(sweep):
    """--jobid from outside an allocation of two nodes: its other node is found too, and all of it is used."""
    job = sweep.cluster.run("bash", "-c", "salloc --no-shell -N2 -J standing 2>&1").split()[-1]
    try:
        assert sweep.start("run", str(sweep.grid), "--jobid", job).wait(END_SECONDS) == 0, sweep.tell()
        assert sweep.outcomes() == ["ok"] * 8, sweep.outcomes()
        assert sweep.rows("select nodes from allocation") == [(2,)], sweep.rows("select * from allocation")
    finally:
        sweep.cluster.run("scancel", job)


def waits_too_long(sweep):
    """No node is free within max_pending_minutes: said, and not one of the jobs that were asked for stays in the queue."""
    for node in sweep.cluster.nodes:
        sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        sweep.run(expected_code=1)
        states = [job[1] for job in sweep.jobs()]
    finally:
        for node in sweep.cluster.nodes:
            sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
    assert states and set(states) == {"CANCELLED"}, states
    assert "waited longer than 0.05 min" in sweep.log.read_text() and sweep.outcomes() == [None] * 2, sweep.outcomes()


def asks_first(sweep):
    """Above confirm_gpu_hours the user must confirm: by an option without a terminal, by an answer on one; or set a limit."""
    sweep.run(expected_code=2)
    assert "say --yes, or end it at 1e-06 with --gpu-hours" in sweep.log.read_text() and not sweep.db.exists()
    assert sweep.on_a_terminal("n") == 2 and not sweep.db.exists(), sweep.log.read_text()
    assert sweep.on_a_terminal("y") == 0, sweep.log.read_text()
    assert sweep.outcomes() == ["ok"] * 2, sweep.outcomes()
    held, = sweep.rows("select sum((ended_unix_ns - started_unix_ns) / 1e9 * nodes * gpus) from allocation")[0]
    assert held > 0 and " GPU-hours (on a CPU: slot-hours), all runs together" in sweep.say("status"), sweep.say("status")
    sweep.grid.write_text(sweep.grid.read_text().replace("[64, 65, 1]", "[64, 66, 1]"))
    assert sweep.start("run", str(sweep.grid), "--gpu-hours", "1e-6").wait(END_SECONDS) == 1, "it needs no yes"
    assert "the limit of 1e-06 GPU-hours is used up" in sweep.log.read_text() and len(sweep.jobs()) == 1, sweep.jobs()
    assert sweep.start("resume", "--gpu-hours", "1").wait(END_SECONDS) == 0, sweep.log.read_text()


def cleaned_up(sweep):
    """An orchestrator that is gone for good: clean shows its job, and ends it when told."""
    sweep.run_and_kill()
    clean = [*sweep.cluster.inside(), str(sweep.sweep), "clean", "--db", str(sweep.db)]
    shown = subprocess.run(clean, env=sweep.environment, capture_output=True, text=True, check=True).stdout
    job = sweep.jobs()[0]
    assert f"Slurm job {job[0]}" in shown and job[1] == "RUNNING", (shown, job)
    assert sweep.start("resume", "--on", "local").wait(END_SECONDS) == 2, "the job may still run"
    subprocess.run([*clean, "--yes"], env=sweep.environment, capture_output=True, check=True)
    assert sweep.jobs()[0][1] == "CANCELLED", sweep.jobs()
    outbox, = sweep.folder.glob("r.db.spool/*/outbox.jsonl")
    assert b'"kind":"bye"' in outbox.read_bytes(), "the agent was killed; it ends its ranks itself when its job is cancelled"
    sweep.open_gate()
    assert sweep.start("resume", "--on", "local").wait(END_SECONDS) == 0
    assert len(sweep.jobs()) == 1, sweep.jobs()
    assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()


def as_a_job(sweep):
    """The orchestrator is a Slurm job of its own: followed from outside, put back into the queue in the middle, and stopped."""
    assert sweep.start("run", str(sweep.grid), "--as-job", "main").wait(END_SECONDS) == 0, sweep.log.read_text()
    own = orchestrators(sweep)
    assert len(own) == 1, sweep.cluster.jobs()
    assert sweep.start("resume", "--as-job", "main", "--on", "slurm").wait(END_SECONDS) in (0, 1)  # watches, or is told: no second job
    assert len(orchestrators(sweep)) == 1, sweep.cluster.jobs()
    wait(lambda: orchestrators(sweep)[0][1] == "COMPLETED", "the orchestrator's job ends with the sweep")
    assert sweep.outcomes() == ["ok"] * 2, sweep.outcomes()


def as_a_job_requeued(sweep):
    """Slurm puts the orchestrator back into its queue: the allocation runs on, the next start takes it up, and asks for more."""
    assert sweep.start("run", str(sweep.grid), "--as-job", "main").wait(END_SECONDS) == 0, sweep.log.read_text()
    sweep.let_pass(2)
    wait(lambda: sweep.has_results(2), "two results")
    (number, *_), = orchestrators(sweep)
    before = [job[0] for job in sweep.jobs()]
    sweep.cluster.run("scontrol", "requeue", number)
    wait(lambda: orchestrators(sweep)[0][1] == "PENDING", "the orchestrator waits")
    assert [job[1] for job in sweep.jobs() if job[0] in before] == ["RUNNING"], sweep.jobs()
    # Slurm itself waits two minutes. A start in the second in which the first one's credential was taken away is refused ("Job
    # credential revoked", slurmctld's log), since slurmd compares whole seconds; and the job is FAILED without having run.
    sweep.cluster.run("scontrol", "update", f"jobid={number}", "StartTime=now+2")
    wait(lambda: orchestrators(sweep)[0][1] == "RUNNING", "the orchestrator runs again")
    shown = sweep.say("status")
    assert "done" in shown or "ok" in shown, shown
    sweep.cluster.run("scancel", before[0])  # the second start asks for the next one
    sweep.open_gate()
    wait(lambda: orchestrators(sweep)[0][1] in ("COMPLETED", "FAILED"), f"the sweep ends: {sweep.cluster.jobs()}", END_SECONDS)
    assert sweep.outcomes() == ["ok"] * 12, (sweep.outcomes(), sweep.cluster.jobs())
    assert orchestrators(sweep)[0][1] == "COMPLETED" and len(sweep.jobs()) >= 2, sweep.cluster.jobs()


def as_a_job_stopped(sweep):
    """`stop` from outside: of an orchestrator that waits in the queue, and of one that runs."""
    for node in sweep.cluster.nodes:
        sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    try:
        assert sweep.start("run", str(sweep.grid), "--as-job", "main").wait(END_SECONDS) == 0
        assert sweep.start("run", str(sweep.grid), "--as-job", "main").wait(END_SECONDS) == 0  # the same once more
        assert [job[1] for job in orchestrators(sweep)] == ["PENDING"], orchestrators(sweep)
        sweep.say("stop")
        assert [job[1] for job in orchestrators(sweep)] == ["CANCELLED"], orchestrators(sweep)
    finally:
        for node in sweep.cluster.nodes:
            sweep.cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
    assert sweep.start("resume", "--as-job", "main").wait(END_SECONDS) == 0
    sweep.let_pass(2)
    wait(lambda: sweep.has_results(2), "two results")
    sweep.say("stop", "--now")
    wait(lambda: all(job[1] not in ("PENDING", "RUNNING", "COMPLETING") for job in orchestrators(sweep)), "the orchestrator ended")
    assert None in sweep.outcomes(), sweep.outcomes()
    sweep.open_gate()
    assert sweep.start("resume").wait(END_SECONDS) == 0
    assert sweep.outcomes() == ["ok"] * 12, sweep.outcomes()


def side_by_side(sweep):
    """colocate: trials of one node share it, each on slots of its own, and their results say so."""
    sweep.run(expected_code=0)
    assert sweep.outcomes() == ["ok"] * 4 and len(sweep.jobs()) == 1, (sweep.outcomes(), sweep.jobs())
    beside = [count for (count,) in sweep.rows("select neighbours from results")]
    assert max(beside) >= 1, beside
    places = [json.loads(text)["devices"] for (text,) in sweep.rows("select effective from rank_record")]
    assert set(places) == {"4", "6"}, f"each had one of the two GPUs: {places}"
    (price, cost), *_ = sweep.rows("select usd_per_node_hour, cost_per_mt from results")
    assert price == 7 and cost > 0, (price, cost)
    shown = sweep.say("best")
    assert "its times are disturbed" in shown, shown


def node_powered_off(sweep):
    """A node dies with all that runs on it: one attempt is lost, what only waited is not, and other nodes finish the sweep."""
    run = sweep.start("run", str(sweep.grid))
    sweep.let_pass(1)
    wait(lambda: sweep.has_results(1), "one result")
    node = sweep.cluster.run("squeue", "-h", "-t", "R", "-o", "%N")
    sweep.cluster.kill_node(node)
    sweep.open_gate()
    try:
        assert run.wait(END_SECONDS) == 0
    finally:
        sweep.cluster.start_node(node)
    assert sweep.outcomes() == ["ok"] * 6, sweep.outcomes()
    lost = sweep.rows("select count(*) from result where outcome = 6")
    assert lost[0][0] <= 1, f"{lost} attempts burnt a retry"
    assert [job[1] for job in sweep.jobs()].count("NODE_FAIL") == 1, sweep.jobs()


def main():
    bin_dir, rank = programs(slurm.missing())
    one_job = LAUNCH.replace("max_allocations: 2", "max_allocations: 1")
    one_node = one_job.replace("max_nodes: 2", "max_nodes: 1")  # the orchestrator's job holds the other
    short = one_job.replace("signal_seconds: 20", 'signal_seconds: 35, time: "00:01:00"')
    mode = os.environ.get("SWEEP_CLUSTER_MODE") or "plain"
    with tempfile.TemporaryDirectory(prefix="sweep-slurm-") as root, \
            slurm.Cluster(pathlib.Path(root) / "cluster", nodes=2, mode=mode) as cluster:
        for case, trials, words in chosen([
                (scripted_outcomes, 10, {"fake": "seq_len - 64"}),
                (killed_while_running, 8, {"gated": True, "launch": one_job, "ranks": 2}),
                (killed_while_waiting, 2, {"launch": one_job, "ranks": 2}),
                (cancelled_from_outside, 6, {"gated": True, "launch": one_job}),
                (in_a_standing_allocation, 6, {"gated": True, "launch": one_job}),
                (in_one_of_two_nodes, 4, {"step_ms": 100, "launch": "poll_seconds: 1", "nodes": (1, 2)}),
                (waits_too_long, 2, {"launch": one_job + ", max_pending_minutes: 0.05"}),
                (asks_first, 2, {"launch": one_job + ", confirm_gpu_hours: 1e-6"}),
                (cleaned_up, 6, {"gated": True, "launch": one_job}),
                (over_two_nodes, 4, {"step_ms": 200, "launch": one_job, "nodes": (1, 2)}),
                (replaced_program, 2, {}),
                (as_a_job, 2, {"launch": one_node}),
                (as_a_job_requeued, 12, {"gated": True, "launch": one_node}),
                (as_a_job_stopped, 12, {"gated": True, "launch": one_node}),
                (side_by_side, 4, {"step_ms": 400, "launch": one_job + ", colocate: true, slots: 2, prologue: ['export CUDA_VISIBLE_DEVICES=4,6']"}),
                (node_powered_off, 6, {"gated": True, "launch": one_job}),
                (out_of_time, 7, {"step_ms": 1500, "launch": short})]):
            if case is node_powered_off and not cluster.networks:
                continue  # all nodes are this machine
            play(case, Sweep(bin_dir, rank, cluster, folder_of(root, case), trials, **words))


if __name__ == "__main__":
    main()
