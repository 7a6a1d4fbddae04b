"""Figures of scripts/bench about the training step on two CPU ranks: against PyTorch's DDP, FSDP2 and tensor parallelism, and the
bubble of a pipeline; with what every figure needs: running a command, `sweep run` of a grid of one shape, the torchrun beside it."""
import contextlib
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RANKS = 2
SHAPES = {
    "small": dict(layers=4, hidden=256, heads=4, intermediate=688, vocab=1024, seq_len=256, micro_batch_size=2,
                  warmup=3, steps=20, goal=0.95),
    "matmul": dict(layers=4, hidden=1024, heads=16, intermediate=2816, vocab=1024, seq_len=512, micro_batch_size=1,
                   warmup=2, steps=5, goal=1.02),
}
READINGS = 32
LOSS_DISTANCE = 1e-5  # relative, of the first step's loss in fp32

# Layers of equal cost, and next to no head: stages that are equal, as the formula of the bubble assumes.
STAGES = dict(layers=8, hidden=512, heads=8, intermediate=1376, vocab=64, seq_len=256, micro_batch_size=1, warmup=2, steps=8)
MICROS = (2, 4, 8)
SCHEDULES = {"gpipe": 1, "1f1b": 1, "interleaved": 2, "zero_bubble": 1}  # chunks a rank
BUBBLE_ROUNDS = 5

GRID = """name: {name}
question: How long does one step of this shape take on two CPU ranks?
model: {{family: llama, layers: {layers}, hidden_size: {hidden}, heads: {heads}, kv_heads: {heads},
        intermediate_size: {intermediate}, vocab_size: {vocab}, tie_embeddings: false}}
base: {{hardware: cpu, nodes: 1, gpus_per_node: {ranks}, precision: fp32, optimizer: fused, threads: 1,
       micro_batch_size: {micro_batch_size}{axes}}}
grid:
  seq_len: {seq_lens}
measure: {{warmup_steps: {warmup}, steps: {steps}}}
"""


def emit(figure, **values):
    print(json.dumps({"figure": figure, **values}), flush=True)


def shown(command):
    return shlex.join(str(part) for part in command)


def run(command, **options):
    """Runs on this process's two cores with one thread a rank; a failure ends the bench with what was said."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, **options)
    if done.returncode:
        sys.exit(f"bench: {shown(command)} exited {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def bench_program(build, name):
    """The program's path, once it is built: `all` leaves these programs out."""
    if (build / "build.ninja").exists():
        run(["cmake", "--build", build, "--target", name])
    return build / "bin" / name


def last_json(text):
    return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])


class Ours:
    """`sweep run` of a grid into a database of its own, and questions to it."""

    def __init__(self, bin_dir, folder):
        self.sweep, self.rank, self.folder, self.runs = bin_dir / "sweep", bin_dir / "sweep-rank", folder, 0

    def run(self, shape, seq_lens, **axes):
        """Axes beside the shape's; by default the ranks are data-parallel."""
        axes = axes or {"global_batch_size": RANKS * shape["micro_batch_size"]}
        self.runs += 1
        grid, db = self.folder / f"grid{self.runs}.yaml", self.folder / f"bench{self.runs}.db"
        grid.write_text(GRID.format(name="bench", ranks=RANKS, seq_lens=list(seq_lens), **shape,
                                    axes="".join(f", {axis}: {value}" for axis, value in axes.items())))
        self.command = [self.sweep, "run", grid, "--db", db, "--on", "local", "--slots", str(RANKS)]
        run(self.command)
        return db

    def query(self, db, sql):
        return json.loads(run([self.sweep, "query", sql, "--db", db, "--json"]))

    def value(self, shape, metric, **axes):
        """One trial's metric."""
        db = self.run(shape, [shape["seq_len"]], **axes)
        rows = self.query(db, f"select {metric} from results where outcome = 'ok'")
        if len(rows) != 1:
            sys.exit(f"bench: {shown(self.command)} left {len(rows)} results that are ok, 1 expected")
        return rows[0][metric]


def torchrun_command(shape, seq_len, *more):
    python = os.environ.get("SWEEP_PYTHON", str(ROOT / "build" / "venv" / "bin" / "python"))
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS),
               ROOT / "scripts" / "bench_pytorch.py"]
    for flag in ("layers", "hidden", "heads", "micro_batch_size", "vocab", "intermediate", "warmup", "steps"):
        command += ["--" + flag.replace("_", "-"), str(shape[flag])]
    return command + ["--seq-len", str(seq_len), *more]


def in_turns(sides, rounds):
    """Each side's readings, one a round; the order alternates, so that drift of the machine hits all sides alike."""
    readings: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in sides if turn % 2 == 0 else reversed(list(sides)):
            readings[name].append(sides[name]())
    return readings


def compare(letter, ours, options, against, flags, axes):
    """Step times at both shapes beside PyTorch's. Axes: of the shape's micro-batch size; absent: data-parallel."""
    for name, shape in SHAPES.items():
        chosen = axes(shape) if axes else {}
        theirs = torchrun_command(shape, shape["seq_len"], *flags)
        sides = {"ours": lambda: ours.value(shape, "step_ms", **chosen), "pytorch": lambda: last_json(run(theirs))["median_ms"]}
        if axes:
            sides["gloo"] = lambda: ours.value(shape, "step_ms", **chosen, backend="gloo")
        times = in_turns(sides, options.pairs)
        ratios = [a / b for a, b in zip(times["ours"], times["pytorch"])]
        ratio = statistics.median(times["ours"]) / statistics.median(times["pytorch"])
        over_gloo = {"ours_over_gloo_ms": times["gloo"]} if axes else {}
        emit(letter, name=f"step time, {name} shape: ours / {against}", value=ratio, unit="ratio of medians",
             goal=f"<= {shape['goal']}", met=ratio <= shape["goal"], pairs=options.pairs, pair_ratio_median=statistics.median(ratios),
             pair_ratio_min=min(ratios), pair_ratio_max=max(ratios), ours_ms=times["ours"], pytorch_ms=times["pytorch"], **over_gloo,
             axes=chosen, shape=shape, ranks=RANKS, load=os.getloadavg()[0], command=shown(ours.command), against=shown(theirs))
        yield name, statistics.median(times["ours"])


def data_parallel(ours, options):
    for name, step_ms in compare("a", ours, options, "PyTorch DDP", (), None):
        emit_timer_cost(name, step_ms, options)


def emit_timer_cost(shape_name, step_ms, options):
    """On CPU ranks the timers of a step are readings of the steady clock, far fewer than READINGS a step of one micro-step."""
    command = [bench_program(options.build, "clock_bench")]
    cost = READINGS * last_json(run(command))["reading_ns"] / 1e6 / step_ms
    emit("a", name=f"timers' share of a step, {shape_name} shape, at most", value=cost, unit="fraction", goal="<= 0.01",
         met=cost <= 0.01, readings=READINGS, command=shown(command))


def same_loss(letter, ours, flags, check_flags):
    """The first step's loss of the same weights and tokens, by both."""
    for name, shape in SHAPES.items():
        folder = ours.folder / f"checkpoint-{letter}-{name}"
        theirs = torchrun_command({**shape, "warmup": 0, "steps": 1}, shape["seq_len"], *flags, "--dump", str(folder))
        expected = last_json(run(theirs))["loss_first"]
        command = [ours.rank, "check", "--checkpoint", folder, "--tokens", folder / "tokens.json", *check_flags]
        loss = last_json(run(command))["loss"]
        distance = abs(loss - expected) / abs(expected)
        emit(letter, name=f"loss of the first step, {name} shape: distance from PyTorch's", value=distance, unit="relative",
             goal=f"<= {LOSS_DISTANCE}", met=distance <= LOSS_DISTANCE, ours=loss, pytorch=expected, command=shown(command),
             against=shown(theirs))


def fully_sharded(ours, options):
    flags = ("--parallel", "fsdp")
    same_loss("i", ours, flags, ["--dp", str(RANKS), "--zero", "3"])
    list(compare("i", ours, options, "PyTorch FSDP2", flags,
                 lambda shape: {"zero": 3, "global_batch_size": RANKS * shape["micro_batch_size"]}))


def tensor_parallel(ours, options):
    flags = ("--parallel", "tp")
    same_loss("j", ours, flags, ["--tp", str(RANKS)])
    list(compare("j", ours, options, "PyTorch parallelize_module", flags,
                 lambda shape: {"tp": RANKS, "global_batch_size": shape["micro_batch_size"]}))


@contextlib.contextmanager
def busy_cores(wanted):
    """A loop that computes on each of the cores, at this process's priority."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(RANKS if wanted else 0)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def beside_load(ours, options):
    """How many times as long a step takes beside a busy loop on each core: ours over both CPU backends, and PyTorch's DDP."""
    shape = SHAPES["small"]
    theirs = torchrun_command(shape, shape["seq_len"])
    batch = {"global_batch_size": RANKS * shape["micro_batch_size"]}
    sides = {"shm": lambda: ours.value(shape, "step_ms", **batch), "gloo": lambda: ours.value(shape, "step_ms", **batch, backend="gloo"),
             "pytorch": lambda: last_json(run(theirs))["median_ms"]}
    times: dict[bool, dict[str, list[float]]] = {False: {name: [] for name in sides}, True: {name: [] for name in sides}}
    for _ in range(options.pairs):
        for busy in (False, True):
            with busy_cores(busy):
                for name, reading in in_turns(sides, 1).items():
                    times[busy][name] += reading
    lost = {name: statistics.median(times[True][name]) / statistics.median(times[False][name]) for name in sides}
    emit("o", name="step time beside a busy loop on each core, over that without: ours over shared memory", value=lost["shm"],
         unit="ratio of medians", goal=f"<= 1.05 x PyTorch DDP's {lost['pytorch']:.2f}", met=lost["shm"] <= 1.05 * lost["pytorch"], lost=lost,
         quiet_ms=times[False], busy_ms=times[True], shape=shape, ranks=RANKS, load=os.getloadavg()[0], against=shown(theirs))


def bubble(ours, options):
    """The metric `bubble` (docs/metrics.md): of both ranks' time without the optimizer, the share outside forward and backward."""
    for micros in MICROS:
        axes = {schedule: {"pp": RANKS, "schedule": schedule, "vpp": chunks, "global_batch_size": micros * STAGES["micro_batch_size"]}
                for schedule, chunks in SCHEDULES.items()}
        sides = {schedule: lambda chosen=chosen: ours.value(STAGES, "bubble", **chosen) for schedule, chosen in axes.items()}
        for schedule, values in in_turns(sides, BUBBLE_ROUNDS).items():
            chunks = SCHEDULES[schedule]
            fill = (RANKS - 1) / (3 if schedule == "zero_bubble" else 1)
            formula = fill / (micros * chunks + fill)
            value = statistics.median(values)
            emit("k", name=f"bubble of 2 stages, {schedule}, {micros} micro-batches", value=value, unit="fraction", formula=formula,
                 over=value - formula, each=values, shape=STAGES, axes=axes[schedule], ranks=RANKS, load=os.getloadavg()[0],
                 command=shown(ours.command))
