"""One sweep on a real Slurm, or another batch system, with ranks that play scripts (tests/support/fake_trial.cpp), for the tests that
start sweeps there."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import database
import processes
from cluster import daemons

END_SECONDS = 400  # far more than any sweep here takes on a busy machine

GRID = """name: {name}
question: Does it come back as it was scripted?
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, gpus_per_node: {ranks}}}
grid: {{seq_len: {{range: [64, {last}, 1]}}, nodes: {nodes}}}
derive: {{fake: "{fake}", fake_step_ms: "{step_ms}"}}
measure: {{warmup_steps: 1, steps: 2}}
limits: {{trial_seconds: {limit}}}
launch: {{{launcher}: {{{launch}}}}}
"""
LAUNCH = "partition: main, max_nodes: 2, max_allocations: 2, poll_seconds: 1, signal_seconds: 20"


class Sweep:
    """One sweep in a folder of its own, and what must hold at its end."""
    launcher = "slurm"

    def __init__(self, bin_dir, rank, cluster, folder, trials, fake="0", step_ms=1, launch=LAUNCH, nodes=(1,), ranks=1, gated=False):
        self.sweep, self.rank, self.cluster, self.name = bin_dir / "sweep", rank, cluster, folder.name
        self.folder, name = folder, folder.name
        self.folder.mkdir()
        self.gate = self.folder / "gate"
        self.gate.mkdir()
        self.db, self.log, self.grid = self.folder / "r.db", self.folder / "log", self.folder / "grid.yaml"
        self.grid.write_text(GRID.format(name=name, last=63 + trials, fake=fake, step_ms=step_ms, launcher=self.launcher, launch=launch,
                                          nodes=list(nodes), ranks=ranks, limit=20 if fake != "0" else 120))
        _, self.mark = processes.marked_environment()
        self.environment = {**cluster.environment, processes.MARK: self.mark, "SWEEP_SITE": str(self.folder / "site.yaml"),
                            **({"SWEEP_FAKE_GATE": str(self.gate)} if gated else {})}  # sbatch and srun pass it on
        (self.folder / "site.yaml").write_text("prices: {cpu: {node_hour: 7}}\n")

    def start(self, *words):
        with self.log.open("ab") as log:
            return subprocess.Popen([*self.cluster.inside(), str(self.sweep), *words, "--db", str(self.db), "--rank", str(self.rank)],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                                    start_new_session=True, cwd=self.folder)

    def let_pass(self, count):
        """Lets so many more ranks of a gated sweep go on beyond their first step."""
        for _ in range(count):
            tempfile.mkstemp(dir=self.gate)

    def open_gate(self):
        (self.gate / "open").touch()

    def on_a_terminal(self, answer):
        """The exit code of a run that is asked something on a terminal."""
        command = [*self.cluster.inside(), str(self.sweep), "run", str(self.grid), "--db", str(self.db), "--rank", str(self.rank)]
        code, said = processes.on_a_terminal(command, answer, self.environment, self.folder, END_SECONDS)
        with self.log.open("ab") as log:
            log.write(said)
        return code

    def say(self, *words):
        """The answer of a command."""
        return subprocess.run([*self.cluster.inside(), str(self.sweep), *words, "--db", str(self.db)], env=self.environment,
                              capture_output=True, text=True, check=True, cwd=self.folder).stdout

    def run(self, expected_code):
        code = self.start("run", str(self.grid)).wait(END_SECONDS)
        assert code == expected_code, f"exit {code}, {expected_code} expected\n{self.log.read_text()[-4000:]}"

    def run_and_kill(self, *words, passed=1, results=1):
        """A run that is killed with -9 after so many results; so many of its ranks are let pass."""
        first = self.start("run", str(self.grid), *words)
        self.let_pass(passed)
        wait(lambda: self.has_results(results), f"{results} results")
        os.kill(first.pid, signal.SIGKILL)
        first.wait()

    def rows(self, sql):
        return database.rows(self.db, sql)

    def jobs(self):
        """Numbers of the Slurm jobs that this sweep's allocations are, as Slurm tells them: id, state, name."""
        own = {f"sweep-{name}" for (name,) in self.rows("select id from allocation")}
        return [job for job in self.cluster.jobs() if job[2] in own]

    def outcomes(self):
        return [outcome for (outcome,) in self.rows("select outcome from results order by seq_len")]

    def has_results(self, count):
        return (self.db.exists() and self.rows("select name from sqlite_master where name = 'results'")
                and sum(outcome is not None for outcome in self.outcomes()) >= count)

    def check_end(self):
        processes.wait_until_none(self.mark, 90)
        daemons.wait_for(lambda: set(self.cluster.states().values()) == {"idle"}, 90, f"idle: {self.cluster.states()}")
        database.check(self.db)
        assert not self.rows("select id from allocation where ended_unix_ns is null"), "an allocation is still open"
        assert all(job[1] not in ("RUNNING", "PENDING") for job in self.jobs()), self.jobs()

    def tell(self):
        spools = sorted(self.folder.glob("r.db.spool/*/*.log"))
        logs = "".join(f"== {path.parent.name}/{path.name}\n{path.read_text(errors='replace')[-1500:]}\n" for path in spools)
        return f"== sweep\n{self.log.read_text(errors='replace')[-4000:]}\n{logs}"


@contextlib.contextmanager
def told(sweep):
    try:
        yield sweep
    except BaseException:
        print(sweep.tell(), flush=True)
        raise


def play(case, sweep):
    """One case, and what must hold at its end."""
    with told(sweep):
        case(sweep)
        sweep.check_end()
        assert not sweep.cluster.drained(), sweep.cluster.states()
        print(f"{case.__name__}: {len(sweep.rows('select 1 from allocation'))} allocations, {len(sweep.outcomes())} trials", flush=True)


def programs(lacking):
    """BIN and RANK of the command line. Exits with 77 where the machine lacks what the cluster needs."""
    if lacking:
        print(f"skipped: this machine lacks {', '.join(lacking)}")
        sys.exit(77)
    return pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def chosen(cases):
    """Those of the cases, tuples that begin with a function, that further words of the command line name; without any all."""
    return [case for case in cases if not sys.argv[3:] or case[0].__name__ in sys.argv[3:]]


def folder_of(root, case):
    return pathlib.Path(root) / case.__name__.replace("_", "-")


def wait(condition, what, seconds=200):
    return daemons.wait_for(condition, seconds, what)


def orchestrators(sweep):
    """Jobs that run this sweep's orchestrator, by their names."""
    return [job for job in sweep.cluster.jobs() if job[2].startswith(f"sweep-run-{sweep.name}-")]
