"""What gpu_check has found, in three files of one folder: gpu-check.json (every row of every step), gpu-check.md (the same to
read) and gpu-check.tar (databases and logs of trials that did not end ok). Each is written anew and renamed into place."""
import datetime
import json
import os
import pathlib
import shutil
import tarfile
import time

MOST_BYTES = 14 << 20  # of gpu-check.tar
MOST_OF_A_LOG = 1 << 20  # its end


class Folder:
    """Records of all steps; those of an earlier gpu_check in the folder stay until their step runs again."""
    def __init__(self, out):
        self.out, path = out, out / "gpu-check.json"
        out.mkdir(parents=True, exist_ok=True)
        self.steps = {step["step"]: step for step in json.loads(path.read_text())} if path.exists() else {}

    def replace(self, name, write):
        fresh = self.out / f"{name}.new"
        write(fresh)
        with open(fresh, "rb") as file:
            os.fsync(file.fileno())
        fresh.replace(self.out / name)

    def write(self):
        steps = [self.steps[number] for number in sorted(self.steps)]
        self.replace("gpu-check.json", lambda path: path.write_text(json.dumps(steps, indent=1) + "\n"))
        self.replace("gpu-check.md", lambda path: path.write_text(summary(steps)))

    def keep(self, under, root, paths):
        """Adds these files of `root` to gpu-check.tar, as under/...; those that no longer fit are left out."""
        def write(fresh):
            if (self.out / "gpu-check.tar").exists():
                shutil.copy(self.out / "gpu-check.tar", fresh)
            for path in paths:
                with tarfile.open(fresh, "a") as tar, open(path, "rb") as file:
                    info = tar.gettarinfo(fileobj=file, arcname=f"{under}/{pathlib.Path(path).relative_to(root)}")
                    if path.suffix != ".db":
                        file.seek(max(0, info.size - MOST_OF_A_LOG))
                        info.size = min(info.size, MOST_OF_A_LOG)
                    if fresh.stat().st_size + info.size < MOST_BYTES:
                        tar.addfile(info, file)
        if paths:
            self.replace("gpu-check.tar", write)


class Record:
    """The findings of one step. After each row all of them are on disk."""
    def __init__(self, folder, step, machine, surroundings):
        self.folder, self.began = folder, time.monotonic()
        self.content = dict(step=step.number, name=step.name, title=step.title, phantom=machine.phantom, hardware=machine.hardware,
                            gpus=machine.gpus, started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                            seconds=0.0, state="running", met=None, notes=[], rows=[], surroundings=surroundings)
        folder.steps[step.number] = self.content
        self.write()

    def write(self):
        self.content["seconds"] = round(time.monotonic() - self.began, 1)
        self.folder.write()

    def row(self, met, **values):
        """met: True, False, or None where there is nothing to judge by. The row, which complete() may change."""
        self.content["rows"].append({})
        return self.complete(self.content["rows"][-1], met, **values)

    def complete(self, row, met, **values):
        row.pop("met", None)  # it is the last column
        row.update(values, met=met)
        print(json.dumps({"step": self.content["step"], **row}), flush=True)
        self.write()
        return row

    def note(self, text):
        self.content["notes"].append(text)
        print(f"gpu_check: {text}", flush=True)
        self.write()

    def keep(self, root, paths):
        self.folder.keep(f"{self.content['step']}-{self.content['name']}", root, paths)

    def close(self, state):
        """state: done, cut (out of time), skipped (no time left), interrupted or failed."""
        rows = self.content["rows"]
        self.content["state"] = state
        self.content["met"] = state == "done" and bool(rows) and all(row["met"] is not False for row in rows)
        self.write()
        return self.content["met"]


def cell(value):
    if isinstance(value, dict):
        return " ".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None:
        return ""
    text = str(value).replace("|", "/").replace("\n", " ")
    return text if len(text) <= 160 else text[:157] + "..."


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


def summary(contents):
    """gpu-check.md"""
    head = contents[-1]
    lines = ["# gpu_check", "", f"{'PHANTOM GPU of ' if head['phantom'] else ''}{head['hardware']}, {head['started']}", "",
             "| surroundings | |", "|---|---|"]
    lines += [f"| {fact['what']} | {cell(fact['found'])} |" for fact in head["surroundings"]] + [""]
    return "\n".join(lines + [line for content in contents for line in section(content)]) + "\n"
