"""Runs sweeps for gpu_check and keeps what they show: every row is on disk before the next one is made."""
import datetime
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

SQL = """select t.id as trial, a.id as attempt, al.spool, r.* from results r join trial t on t.id = r.trial
join plan_entry p on p.trial = t.key left join attempt a on a.id = p.final_attempt left join allocation al on al.id = a.allocation
where r.outcome is not null order by p.place"""
SAID = ("precision", "attention", "optimizer", "recompute", "recompute_every", "offload", "activation_offload", "grad_clip", "zero", "tp", "pp",
        "cp", "ep", "sp", "tp_overlap", "schedule", "vpp", "cp_comm_type", "routing", "micro_batch_size", "backend", "memory_cap_bytes")


class OutOfTime(Exception):
    """The step's share of time is used up; what it has found so far is kept."""


def cell(value):
    if isinstance(value, dict):
        return " ".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None:
        return ""
    text = str(value).replace("|", "/").replace("\n", " ")
    return text if len(text) <= 160 else text[:157] + "..."


class Record:
    """The findings of one step: a JSON file, written anew and renamed into place at each row."""
    def __init__(self, out, step, machine, surroundings):
        self.out, self.path, self.began = out, out / f"gpu-check-{step.number}.json", time.monotonic()
        self.content = dict(step=step.number, name=step.name, title=step.title, phantom=machine.phantom, hardware=machine.hardware,
                            gpus=machine.gpus, started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                            seconds=0.0, state="running", met=None, notes=[], rows=[], surroundings=surroundings)
        self.write()

    def write(self):
        self.content["seconds"] = round(time.monotonic() - self.began, 1)
        text = json.dumps(self.content, indent=1)
        fresh = self.path.with_suffix(".new")
        with open(fresh, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)
        write_summary(self.out)

    def row(self, met, **values):
        """met: True, False, or None where there is nothing to judge by."""
        self.content["rows"].append({**values, "met": met})
        print(json.dumps({"step": self.content["step"], **values, "met": met}), flush=True)
        self.write()

    def note(self, text):
        self.content["notes"].append(text)
        print(f"gpu_check: {text}", flush=True)
        self.write()

    def close(self, state):
        """state: done, cut (out of time) or failed."""
        rows = self.content["rows"]
        self.content["state"] = state
        self.content["met"] = state == "done" and bool(rows) and all(row["met"] is not False for row in rows)
        self.write()
        return self.content["met"]


def section(content):
    """One step's record as markdown."""
    phantom = " **Phantom GPUs: no measurement.**" if content["phantom"] else ""
    found = [fact for fact in content["surroundings"] if not fact["ok"]]
    lines = [f"## {content['step']}. {content['title']}", "",
             f"{content['state']} after {content['seconds']} s; all as expected: {'yes' if content['met'] else 'no'}.{phantom}", ""]
    lines += [f"- {fact['what']}: {fact['found']}. {fact['do']}" for fact in found] + [f"- {note}" for note in content["notes"]]
    keys = list(dict.fromkeys(key for row in content["rows"] for key in row))
    if keys:
        lines += ["", "| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
        lines += ["| " + " | ".join(cell(row.get(key)) for key in keys) + " |" for row in content["rows"]]
    return lines + [""]


def write_summary(out):
    """gpu-check.md: every step whose record lies in the folder."""
    contents = [json.loads(path.read_text()) for path in sorted(out.glob("gpu-check-*.json"))]
    head = contents[-1]
    lines = ["# gpu_check", "", f"{'PHANTOM GPU of ' if head['phantom'] else ''}{head['hardware']}, {head['started']}", "",
             "| surroundings | |", "|---|---|"]
    lines += [f"| {fact['what']} | {cell(fact['found'])} |" for fact in head["surroundings"]] + [""]
    text = "\n".join(lines + [line for content in contents for line in section(content)]) + "\n"
    fresh = out / "gpu-check.md.new"
    fresh.write_text(text)
    fresh.replace(out / "gpu-check.md")


class Sweeps:
    """Grids of one step, run one after another in a folder of their own."""
    def __init__(self, machine, seconds):
        self.machine, self.until = machine, time.monotonic() + seconds
        self.temporary = tempfile.TemporaryDirectory(prefix="sweep-gpu-check-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self.temporary.name)
        self.environment = {**machine.environment, "XDG_STATE_HOME": str(self.folder)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()

    def left(self):
        """Seconds; raises where there are none."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            raise OutOfTime
        return seconds

    def begin(self, name, text, slots=1, rehearse=False, under=(), **variables):
        """(process, database) of `sweep run`; under: the words of a program that runs it."""
        grid, db = self.folder / f"{name}.yaml", self.folder / f"{name}.db"
        grid.write_text(text)
        where = ["--rehearse"] if rehearse else ["--on", "local", "--slots", str(slots)]
        with open(self.folder / f"{name}.log", "w") as log:
            process = subprocess.Popen([*under, str(self.machine.bin / "sweep"), "run", str(grid), "--db", str(db), "--yes", *where],
                                       env={**self.environment, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return process, db

    def rows(self, db):
        """The results of every trial that has ended."""
        if not db.exists():
            return []
        said = subprocess.run([str(self.machine.bin / "sweep"), "query", SQL, "--db", str(db), "--json"], env=self.environment,
                              capture_output=True, text=True, timeout=60)
        return json.loads(said.stdout) if said.returncode == 0 and said.stdout.strip() else []

    def wait(self, process, db, each=None):
        """Every row once, as soon as its trial has ended; all of them at the end. OutOfTime ends the run first."""
        seen = {}
        try:
            while True:
                try:
                    process.wait(min(2.0, self.left()))
                except subprocess.TimeoutExpired:
                    pass
                ended = process.poll() is not None
                for row in self.rows(db):
                    if row["trial"] not in seen:
                        seen[row["trial"]] = row
                        if each:
                            each(row)
                if ended:
                    break
        finally:
            self.end(process)
        if process.returncode not in (0, 1):
            raise RuntimeError(f"sweep run exited {process.returncode}: {db.with_suffix('.log').read_text()[-2000:]}")
        return list(seen.values())

    def run(self, name, text, each=None, **how):
        process, db = self.begin(name, text, **how)
        return self.wait(process, db, each)

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

    def answer(self, *words):
        """What `sweep WORDS` writes to stdout; its exit code may be 1 (something failed)."""
        said = subprocess.run([str(self.machine.bin / "sweep"), *words], env=self.environment, capture_output=True, text=True,
                              timeout=self.left())
        if said.returncode not in (0, 1):
            raise RuntimeError(f"sweep {' '.join(words)} exited {said.returncode}: {said.stderr[-2000:]}")
        return said.stdout

    def predicted_bytes(self, row, backend="cuda"):
        """The highest peak over the ranks, by the dry run of the very configuration that the attempt ran."""
        attempt = pathlib.Path(row["spool"]) / "attempts" / str(row["attempt"]) / "attempt_00000.json"
        trial = json.dumps(json.loads(attempt.read_text())["trial"])
        said = subprocess.run([str(self.machine.bin / "sweep-rank"), "dry-run", "--backend", backend], input=trial + "\n",
                              env=self.environment, capture_output=True, text=True, timeout=120)
        return json.loads(said.stdout).get("peak_rank_bytes") if said.returncode == 0 else None


def axes(row):
    """The trial in the words of the grid: the axes that are not at their defaults in any step."""
    usual = {"attention": "auto", "optimizer": "fused", "recompute": "none", "recompute_every": 1, "offload": "none", "schedule": "1f1b",
             "cp_comm_type": "ring", "routing": "balanced", "backend": "auto", "micro_batch_size": 1, "zero": 0, "tp": 1, "pp": 1, "cp": 1,
             "ep": 1, "vpp": 1}
    return {"model": row["model"], **{key: row[key] for key in SAID if row.get(key) not in (None, 0, False, usual.get(key))}}


def change(found, wanted):
    """found / wanted - 1, where both are known."""
    return None if not found or not wanted else found / wanted - 1
