"""Figures of scripts/bench that need no LibTorch: the run loop on a simulated cluster, and how well allocations are used on
the Slurm of the tests, beside one job per trial."""
import os
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEEDS = (1, 2, 3)
SIMULATED = """name: twenty-thousand
model: {family: llama, layers: 24, hidden_size: 1024, heads: 16, kv_heads: 16, intermediate_size: 2816, vocab_size: 32000, tie_embeddings: false}
base: {hardware: h100-sxm-80gb, gpus_per_node: 8, precision: bf16}
grid:
  nodes: [1, 2, 4, 8]
  micro_batch_size: {range: [1, 5, 1]}
  grad_accum: {range: [1, 25, 1]}
  seq_len: {range: [512, 2501, 51]}
measure: {warmup_steps: 3, steps: 50}
"""

TRIALS, TRIAL_S, NODES = 200, 1.0, 4
STEPS = 10
EFFICIENCY = """name: efficiency
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, gpus_per_node: 1, nodes: 1}}
grid: {{seq_len: {{range: [64, {last}, 1]}}}}
include: [{{seq_len: 63, nodes: {nodes}}}]
derive: {{fake: "0", fake_step_ms: "{step_ms}"}}
measure: {{warmup_steps: 0, steps: {steps}}}
launch: {{slurm: {{partition: main, max_nodes: {nodes}, max_allocations: 1, poll_seconds: 1}}}}
"""
# Per trial the time of its steps, times its nodes; per allocation its end; and the first start.
MEASURED_SQL = """select sum(ns * nodes) from (select s.attempt, sum(s.step_ns) as ns, max(t.nodes) as nodes from step_sample s
join attempt a on a.id = s.attempt join plan_entry p on p.key = a.entry join trial t on t.key = p.trial where s.rank = 0 group by s.attempt)"""
SPANS_SQL = "select (select min(started_unix_ns) from attempt) as first, (select max(ended_unix_ns) from allocation) as last"
JOB = "#!/bin/sh\ndate +%s.%N >{folder}/$SLURM_JOB_ID.start\nsleep {seconds}\ndate +%s.%N >{folder}/$SLURM_JOB_ID.end\n"


def shown(command):
    return shlex.join(str(part) for part in command)


def measured_run(command):
    """Output, seconds, and the largest memory that this one child had."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    begun = time.monotonic()
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"bench: {shown(command)} exited {process.returncode}")
    return said, time.monotonic() - begun, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def simulation(emit, sweep, folder, parse):
    grid = folder / "simulated.yaml"
    grid.write_text(SIMULATED)
    for seed in SEEDS:
        command = [sweep, "simulate", grid, "--nodes", "512", "--seed", str(seed), "--json"]
        said, seconds, peak, cpu = measured_run(command)
        figures = parse(said)
        emit("g", name=f"{figures['trials']} trials on 512 simulated nodes", value=seconds, unit="s", goal="< 60", met=seconds < 60,
             cpu_s=cpu, peak_rss_mb=peak / 1e6, peak_goal_mb=200, peak_met=peak <= 200e6, command=shown(command), forecast=figures)


def slurm_cluster(folder):
    sys.path.insert(0, str(ROOT / "tests" / "cluster"))
    import slurm
    if slurm.missing():
        sys.exit("bench: this machine lacks " + ", ".join(slurm.missing()) + "; scripts/setup test brings them")
    return slurm.Cluster(folder, nodes=NODES)


def ours(cluster, build, folder, query):
    grid, db = folder / "efficiency.yaml", folder / "efficiency.db"
    grid.write_text(EFFICIENCY.format(last=62 + TRIALS, nodes=NODES, step_ms=1000 * TRIAL_S / STEPS, steps=STEPS))
    command = [build / "bin" / "sweep", "run", grid, "--on", "slurm", "--db", db, "--rank", build / "bin" / "fake_rank", "--quiet"]
    done = subprocess.run([str(word) for word in command], env={**cluster.environment, "SWEEP_SITE": str(folder / "none.yaml")},
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"bench: {shown(command)} exited {done.returncode}\n{done.stderr[-3000:]}")
    spans = query(db, SPANS_SQL)[0]
    return {"measured_node_s": list(query(db, MEASURED_SQL)[0].values())[0] / 1e9,
            "node_s": NODES * (spans["last"] - spans["first"]) / 1e9, "command": shown(command)}


def one_job_each(cluster, folder):
    """The usual way: as many jobs, each with a node of its own, whose work is the same second of sleep and starts at once."""
    stamps = folder / "jobs"
    stamps.mkdir()
    script = folder / "job.sh"
    script.write_text(JOB.format(folder=stamps, seconds=TRIAL_S))
    command = ["sbatch", "-N1", "-n1", "--exclusive", "--output=/dev/null", str(script)]
    for _ in range(TRIALS + NODES - 1):  # one of ours takes all the nodes: as many node-seconds of work
        cluster.run(*command)
    until = time.monotonic() + 1800
    while len(list(stamps.glob("*.end"))) < TRIALS + NODES - 1:
        if time.monotonic() > until:
            sys.exit(f"bench: the jobs do not end\n{cluster.tell()}")
        time.sleep(0.2)
    starts = [float(path.read_text()) for path in stamps.glob("*.start")]
    ends = [float(path.read_text()) for path in stamps.glob("*.end")]
    return {"measured_node_s": (TRIALS + NODES - 1) * TRIAL_S, "node_s": NODES * (max(ends) - min(starts)), "command": shown(command)}


def efficiency(emit, build, folder, query):
    with slurm_cluster(folder / "slurm") as cluster:
        mine = ours(cluster, build, folder, query)
        theirs = one_job_each(cluster, folder)
    for side in (mine, theirs):
        side["lost_node_s"] = side["node_s"] - side["measured_node_s"]
        side["efficiency"] = side["measured_node_s"] / side["node_s"]
    less = theirs["lost_node_s"] / mine["lost_node_s"]
    emit("h", name=f"measured / allocated node time, {TRIALS} trials of {TRIAL_S:g} s on {NODES} nodes, after the first start",
         value=mine["efficiency"], unit="fraction", goal=">= 0.95", met=mine["efficiency"] >= 0.95, lost_time_ratio=less,
         ratio_goal=">= 10", ratio_met=less >= 10, ours=mine, one_job_each=theirs, load=os.getloadavg())
