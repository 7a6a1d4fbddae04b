"""Runs sweeps for gpu_check within the time of a step, and hands on each row as soon as its trial has ended."""
import json
import pathlib
import signal
import subprocess
import tempfile
import time

SQL = """select a.id as attempt, al.spool, r.* from results r join trial t on t.id = r.trial
join plan_entry p on p.trial = t.key left join attempt a on a.id = p.final_attempt left join allocation al on al.id = a.allocation
where r.outcome is not null order by p.place"""
SAID = ("precision", "attention", "optimizer", "recompute", "recompute_every", "offload", "activation_offload", "grad_clip", "zero", "tp", "pp",
        "cp", "ep", "sp", "tp_overlap", "schedule", "vpp", "cp_comm_type", "routing", "micro_batch_size", "backend", "memory_cap_bytes",
        "fused_kernels", "packing", "lora_rank", "quantize_base", "cuda_graph")
USUAL = {"attention": "auto", "optimizer": "fused", "recompute": "none", "recompute_every": 1, "offload": "none", "schedule": "1f1b",
         "cp_comm_type": "ring", "routing": "balanced", "backend": "auto", "micro_batch_size": 1, "zero": 0, "tp": 1, "pp": 1, "cp": 1,
         "ep": 1, "vpp": 1, "fused_kernels": "all", "quantize_base": "none"}


class OutOfTime(Exception):
    """The step's share of time is used up; what it has found so far is kept."""


class Sweeps:
    """Grids of one step, run in a folder of their own. keep(folder, files): keeps files of trials that did not end ok."""
    def __init__(self, machine, seconds, keep):
        self.machine, self.until, self.keep = machine, time.monotonic() + seconds, keep
        self.temporary = tempfile.TemporaryDirectory(prefix="sweep-gpu-check-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self.temporary.name)
        self.environment = {**machine.environment, "XDG_STATE_HOME": str(self.folder)}
        self.begun = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.begun:
            self.end(process)
        self.temporary.cleanup()

    def left(self):
        """Seconds; raises where there are none."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            raise OutOfTime
        return seconds

    def program(self, name, *words, seconds, text=None):
        """The ended process of a program of the folder bin."""
        try:
            return subprocess.run([str(self.machine.bin / name), *words], input=text or "", env=self.environment, capture_output=True, text=True,
                                  timeout=min(seconds, self.left()))
        except subprocess.TimeoutExpired as error:
            self.left()
            raise RuntimeError(f"{name} {' '.join(words)[:80]}: no end within {seconds} s") from error

    def begin(self, name, text, slots=1, rehearse=False, under=(), options=(), **variables):
        """(process, database) of `sweep run` with these options; under: the words of a program that runs it."""
        grid, db = self.folder / f"{name}.yaml", self.folder / f"{name}.db"
        grid.write_text(text)
        where = ["--rehearse"] if rehearse else ["--on", "local", "--slots", str(slots)]
        with open(self.folder / f"{name}.log", "w") as log:
            process = subprocess.Popen([*under, str(self.machine.bin / "sweep"), "run", str(grid), "--db", str(db), "--yes", *where, *options],
                                       env={**self.environment, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.begun.append(process)
        return process, db

    def rows(self, db, complete):
        """The results of every trial that has ended. A database that cannot be read yet has none, but a complete one."""
        if not db.exists():
            return []
        said = self.program("sweep", "query", SQL, "--db", str(db), "--json", seconds=60)
        if complete and said.returncode != 0:
            raise RuntimeError(f"sweep query exited {said.returncode}: {said.stderr[-2000:]}")
        return json.loads(said.stdout) if said.returncode == 0 and said.stdout.strip() else []

    def wait(self, process, db, each=None, seconds=None):
        """Every row once, as soon as its trial has ended; all of them at the end. OutOfTime ends the run first; `seconds`
        end it too, and what has not ended by then has no row."""
        seen, until = {}, time.monotonic() + (seconds or self.left())
        try:
            ended = False
            while not ended and time.monotonic() < until:
                try:
                    process.wait(min(2.0, self.left()))
                except subprocess.TimeoutExpired:
                    pass
                ended = process.poll() is not None
                for row in self.rows(db, complete=ended and process.returncode in (0, 1)):
                    if row["trial"] not in seen:
                        seen[row["trial"]] = row
                        if each:
                            each(row)
        finally:
            self.end(process)
            self.keep_failures(db, seen.values(), process)
        if ended and process.returncode not in (0, 1):
            raise RuntimeError(f"sweep run exited {process.returncode}: {db.with_suffix('.log').read_text()[-2000:]}")
        return list(seen.values())

    def keep_failures(self, db, rows, process):
        """Grid, words and database of a sweep, and the attempts of it that did not end ok, if there are any."""
        well = {str(row["attempt"]) for row in rows if row["outcome"] == "ok"}
        attempts = [path for path in pathlib.Path(f"{db}.spool").glob("*/attempts/*") if path.name not in well]
        files = [file for attempt in sorted(attempts) for file in sorted(attempt.rglob("*")) if file.is_file()]
        if files or process.returncode not in (0, 1):
            own = [db.with_suffix(".yaml"), db.with_suffix(".log"), db]
            self.keep(self.folder, [path for path in own if path.exists()] + files)

    def run(self, name, text, each=None, seconds=None, **how):
        process, db = self.begin(name, text, **how)
        return self.wait(process, db, each, seconds)

    @staticmethod
    def end(process):
        """Ctrl-C, as a user would: the trial that runs is ended, its processes too."""
        for blow, seconds in ((signal.SIGINT, 30), (signal.SIGKILL, 10)):
            if process.poll() is None:
                process.send_signal(blow)
                try:
                    process.wait(seconds)
                except subprocess.TimeoutExpired:
                    continue

    def answer(self, *words, seconds):
        """What `sweep WORDS` writes to stdout; its exit code may be 1 (something failed)."""
        said = self.program("sweep", *words, seconds=seconds)
        if said.returncode not in (0, 1):
            raise RuntimeError(f"sweep {' '.join(words)} exited {said.returncode}: {said.stderr[-2000:]}")
        return said.stdout

    def predicted_bytes(self, row, backend="cuda"):
        """The highest peak over the ranks, by the dry run of the very configuration that the attempt ran."""
        attempt = pathlib.Path(row["spool"]) / "attempts" / str(row["attempt"]) / "attempt_00000.json"
        trial = json.dumps(json.loads(attempt.read_text())["trial"])
        said = self.program("sweep-rank", "dry-run", "--backend", backend, seconds=120, text=trial + "\n")
        return json.loads(said.stdout).get("peak_rank_bytes") if said.returncode == 0 else None


def axes(row):
    """The trial in the words of the grid: the axes that are not at their defaults in any step."""
    return {"model": row["model"], **{key: row[key] for key in SAID if row.get(key) not in (None, 0, False, USUAL.get(key))}}


def change(found, wanted):
    """found / wanted - 1, where both are known."""
    return None if not found or not wanted else found / wanted - 1


def near(off, bound):
    """Whether a difference is known and at most this."""
    return off is not None and abs(off) <= bound
