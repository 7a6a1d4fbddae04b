"""Figures of scripts/bench that need no LibTorch: the run loop on a simulated cluster, how well allocations are used on
the Slurm of the tests, beside one job per trial, what a run costs that only waits, and how often it asks Slurm."""
import os
import pathlib
import shlex
import shutil
import signal
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
ALLOCATIONS, LOOKED_AT_S = 64, 60
# It has so many steps that each trial's prediction is long enough for an allocation of its own.
IDLE = """name: idle
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, gpus_per_node: 1, nodes: 1}}
grid: {{seq_len: {{range: [64, {last}, 1]}}}}
derive: {{fake: "0", fake_step_ms: "600000"}}
limits: {{trial_seconds: 3600}}
measure: {{warmup_steps: 0, steps: 500000}}
launch: {{slurm: {{partition: main, time: "02:00:00", max_nodes: {nodes}, max_allocations: {nodes}, allocation_nodes: 1}}}}
"""
PENDING = 10_000
WAITING = """name: waiting
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, gpus_per_node: 1, nodes: 1}}
grid: {{micro_batch_size: {{range: [1, 100, 1]}}, seq_len: {{range: [64, {last}, 1]}}}}
derive: {{fake: "0", fake_step_ms: "1000"}}
measure: {{warmup_steps: 0, steps: 10}}
launch: {{slurm: {{partition: main, max_nodes: {nodes}, max_allocations: {nodes}, allocation_nodes: 1}}}}
"""
ASKS = ["squeue", "sacct", "scontrol", "sinfo", "sbatch", "scancel"]
# Its time, to the left of what it is called with, and then the real one.
COUNTING = "#!/bin/sh\necho \"$(date +%s.%N) {name} $*\" >>{log}\nexec {real} \"$@\"\n"
JOB = "#!/bin/sh\ndate +%s.%N >{folder}/$SLURM_JOB_ID.start\nsleep {seconds}\ndate +%s.%N >{folder}/$SLURM_JOB_ID.end\n"


def shown(command):
    return shlex.join(str(part) for part in command)


def measured_run(command):
    """Output, seconds, and the largest memory that this one child had."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    begun = time.monotonic()
    assert process.stdout
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


def slurm_cluster(folder, nodes=NODES, options=()):
    sys.path.insert(0, str(ROOT / "tests" / "e2e"))
    from cluster import slurm
    if slurm.missing():
        sys.exit("bench: this machine lacks " + ", ".join(slurm.missing()) + "; scripts/setup test brings them")
    return slurm.Cluster(folder, nodes=nodes, options=options)


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


class Started:
    """`sweep run` in the background; interrupted, and waited for, at the end."""

    def __init__(self, cluster, build, folder, text, environment=None):
        grid, self.db = folder / "grid.yaml", folder / "run.db"
        grid.write_text(text)
        words = [build / "bin" / "sweep", "run", grid, "--on", "slurm", "--db", self.db, "--rank", build / "bin" / "fake_rank", "--quiet"]
        self.command, self.log = shown(words), folder / "run.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**cluster.environment, "SWEEP_SITE": str(folder / "none.yaml"), **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for(self, condition, what):
        until = time.monotonic() + 300
        while not condition():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"bench: waited in vain for {what}\n{self.log.read_text()[-3000:]}")
            time.sleep(0.5)

    def cpu_s(self):
        """Its own CPU seconds, and those of the programs it started and that have ended."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = os.sysconf("SC_CLK_TCK")
        return (int(fields[11]) + int(fields[12])) / ticks, (int(fields[13]) + int(fields[14])) / ticks


def idle_cost(emit, build, folder, query):
    """An orchestrator whose allocations all run one long trial each."""
    # So many daemons that start at once on two cores may be slow to answer.
    with slurm_cluster(folder / "slurm-idle", ALLOCATIONS, ["SlurmdTimeout=120", "MessageTimeout=60"]) as cluster:
        with Started(cluster, build, folder, IDLE.format(last=63 + 2 * ALLOCATIONS, nodes=ALLOCATIONS)) as run:
            busy = "select count(distinct allocation) as n from attempt where state = 2"
            run.wait_for(lambda: run.db.exists() and query(run.db, busy)[0]["n"] == ALLOCATIONS, f"{ALLOCATIONS} allocations")
            before, begun = run.cpu_s(), time.monotonic()
            time.sleep(LOOKED_AT_S)  # its cost is measured over this span
            after, span = run.cpu_s(), time.monotonic() - begun
            own, children = ((b - a) / span for a, b in zip(before, after))
            still = query(run.db, busy)[0]["n"]
    emit("l", name=f"orchestrator's CPU while {ALLOCATIONS} allocations run one long trial each", value=own, unit="cores",
         goal="<= 0.01", met=own <= 0.01, programs_it_started=children, span_s=span, allocations=still, command=run.command,
         load=os.getloadavg())


def counting_programs(cluster, folder):
    """A folder in front of PATH whose programs write down that they were called, and then are the real ones."""
    counted, log = folder / "counted", folder / "asked.log"
    counted.mkdir()
    for name in ASKS:
        if real := shutil.which(name, path=cluster.environment["PATH"]):
            (counted / name).write_text(COUNTING.format(name=name, log=log, real=real))
            (counted / name).chmod(0o755)
    return {"PATH": f"{counted}:{cluster.environment['PATH']}"}, log


def questions(emit, build, folder, query):
    """Counts the queries to the scheduler while ten thousand trials wait and short ones end all the time."""
    with slurm_cluster(folder / "slurm-asked") as cluster:
        environment, log = counting_programs(cluster, folder)
        with Started(cluster, build, folder, WAITING.format(last=63 + PENDING // 100, nodes=NODES), environment) as run:
            states = "select sum(state = 0) as waiting, sum(state = 2) as running from plan_entry"
            run.wait_for(lambda: run.db.exists() and (query(run.db, states)[0]["running"] or 0) >= NODES, "trials that run")
            begun = time.time()
            time.sleep(2 * LOOKED_AT_S)  # counted over this span
            ended, left = time.time(), query(run.db, states)[0]["waiting"]
        calls = [line.split() for line in log.read_text().splitlines()]
    # The agents' own calls are theirs (one srun each); whatever is asked from here is counted.
    during = [call[1] for call in calls if begun <= float(call[0]) <= ended]
    before = [call[1] for call in calls if float(call[0]) < begun]
    rate = len(during) / (ended - begun)
    emit("m", name=f"calls of Slurm's programs while {left} trials wait", value=rate, unit="1/s", goal="<= 0.2", met=rate <= 0.2,
         span_s=ended - begun, calls={name: during.count(name) for name in ASKS if name in during},
         until_all_ran={name: before.count(name) for name in ASKS if name in before}, command=run.command)
