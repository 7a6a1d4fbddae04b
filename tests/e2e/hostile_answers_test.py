#!/usr/bin/env python3
"""hostile_answers_test.py BIN: every command that answers, in every form, on databases that have little to say or say it in
odd names: right output or a clear sentence, never a fault, markup from a label, or a control character for the terminal."""
import contextlib
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import xml.etree.ElementTree

import answers_test
import bench
from answers_test import HOSTILE, row

ODD = HOSTILE + "\x1b[31mred\u202e'; DROP TABLE result; -- \"{{7*7}}\""


def nan_rows():
    """Metrics that are absent, and a loss that is no number (JSON has none: it is stored as NULL or as text)."""
    bare = row(1, 1000)
    bare["metrics"] = {"tokens_per_s_gpu": 1000.0}
    odd = row(2, 900)
    odd["metrics"].update(loss_first=None, mfu=None, cost_per_mt=None)
    zero = row(4, 1)
    zero["metrics"] = {"step_ms": 0.0, "tokens_per_s_gpu": 0.0, "mfu": 0.0}
    return [bare, odd, zero]


def odd_rows():
    labels = json.dumps({"kind <b>": ODD, "quote'\"": "漢字"})
    return [row(n, 900 + n, model=ODD if n < 4 else "m", labels=labels) for n in (1, 2, 4)] + [row(8, 0, "crash", model=ODD)]


# Kind of database -> its rows; None: a file that is empty, or one without any sweep.
DATABASES = {
    "none": lambda: [],
    "pending": lambda: [row(1, 0, "pending")],
    "one": lambda: [row(1, 1000)],
    "all-oom": lambda: [row(n, 0, "oom") for n in (1, 2, 4)],
    "all-pruned": lambda: [row(n, 0, "pruned") for n in (1, 2)],
    "null": nan_rows,
    ODD: odd_rows,
}


def as_json(text):
    json.loads(text)


def as_json_lines(text):
    for line in text.splitlines():
        json.loads(line)


def as_csv(text):
    lines = list(csv.reader(io.StringIO(text)))
    assert lines and all(len(line) == len(lines[0]) for line in lines), "rows of different width"


def as_svg(text):
    xml.etree.ElementTree.fromstring(text)
    no_markup(text)


def no_markup(text):
    assert "<script>document" not in text and "<img" not in text and not re.search(r"<[^>]*\sonerror=", text), "markup of a label"


def as_text(text):
    bad = {c for c in text if (ord(c) < 32 and c not in "\n\t") or ord(c) in (0x7f, 0x202e)}
    assert not bad, f"control characters {bad}"


def as_png(raw):
    assert raw.startswith(b"\x89PNG")


# words of a command ("@": the name of the sweep, "#": the id of a trial) -> how its standard output, or the file behind -o, is read
FORMS = [
    (["best"], as_text), (["best", "--json"], as_json), (["best", "--yaml"], as_text), (["best", "--by", "micro_batch_size"], as_text),
    (["best", "--by", "hardware,seq_len", "--metric", "peak_allocated_bytes", "--headroom", "5%"], as_text),
    *[(["best", "--by", "hardware", "--for", tool], as_text) for tool in ("torchtitan", "Megatron-LM", "nanotron", "DeepSpeed")],
    *[(["table", kind], as_text) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
    *[(["table", kind, "--json"], as_json) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
    *[(["table", kind, "--csv"], as_csv) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
    *[(["table", kind, "--markdown"], as_text) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
    (["compare", "@", "@"], as_text), (["compare", "@", "@", "--json"], as_json), (["compare", "@", "@", "-o", "out.html"], no_markup),
    (["explain", "#", "@"], as_text), (["explain", "#", "@", "-o", "out.html"], no_markup),
    (["compare", "@", "--trials", "#,#", "-o", "out.html"], no_markup),
    (["status"], as_text), (["query", "outcomes"], as_text), (["query", "reasons"], as_text), (["query", "best", "--json"], as_json),
    (["query", "select * from results", "--csv"], as_csv), (["query", "select * from results", "--json"], as_json),
    (["export", "csv"], as_csv), (["export", "json"], as_json), (["export", "jsonl"], as_json_lines), (["export", "bencher"], as_json),
    (["export", "github-benchmark", "--metric", "step_ms"], as_json),
    (["report", "-o", "out.html"], no_markup), (["heatmap", "-o", "out.html"], no_markup),
    (["heatmap", "-o", "out.svg"], as_svg), (["heatmap", "-o", "out.png"], as_png), (["heatmap", "-o", "out.csv"], as_csv),
    (["heatmap", "--rows", "micro_batch_size", "--cols", "nodes", "--value", "mfu", "-o", "out.svg"], as_svg),
]


def filled(words, name, trial):
    return [name if w == "@" else w.replace("#", trial) for w in words]


def looked_at(b, words, read, where):
    """Runs it; exit 0 with output that can be read, or 1 or 2 with a sentence on standard error and no output."""
    for old in b.folder.glob("out.*"):
        old.unlink()
    command = [str(b.bin / "sweep"), *words, "--db", str(b.db)]
    done = subprocess.run(command, capture_output=True, timeout=120, cwd=b.folder, env={**os.environ, "XDG_CONFIG_HOME": str(b.folder)})
    said = done.stderr.decode("utf-8")
    at = f"{where}: sweep {' '.join(words)}: exit {done.returncode}: {said[:500]}"
    assert "internal fault" not in said and done.returncode in (0, 1, 2), at
    as_text(said)
    target = b.folder / words[words.index("-o") + 1] if "-o" in words else None
    raw = done.stdout if target is None else target.read_bytes() if target.exists() else b""
    if done.returncode != 0:
        assert len(said.split()) >= 4 and not raw, f"{at}: no clear sentence, or output beside it"
        return False
    try:
        read(raw if read is as_png else raw.decode("utf-8"))
    except Exception as error:
        raise AssertionError(f"{at}\n{error}\n{raw[:1500]!r}") from error
    return True


def every_command_on_every_database(b):
    for name, rows in DATABASES.items():
        b.db = b.folder / f"db{len(list(b.folder.glob('db*.db')))}.db"
        b.make(name, rows(), question=ODD)
        with contextlib.closing(sqlite3.connect(b.db)) as connection:
            trial, = connection.execute("select min(t.id) from plan_entry p join trial t on t.key = p.trial").fetchone()
        answered = sum(looked_at(b, filled(words, name, trial or "0"), read, name[:12]) for words, read in FORMS)
        print(f"   {name[:12]!r}: {answered} of {len(FORMS)} answered, the others said why not", flush=True)
        if name in ("one", ODD):
            assert answered == len(FORMS), name


def empty_files_are_said_to_be_so(b):
    empty, foreign = b.folder / "empty.db", b.folder / "foreign.db"
    sqlite3.connect(empty).close()
    empty.touch()
    with sqlite3.connect(foreign) as other:
        other.execute("create table t (x)")
    for database in (empty, foreign, b.folder / "absent.db"):
        b.db = database
        before = b.db.read_bytes() if b.db.exists() else None
        # The first form of each command, and the comparison of trials: a command opens the file before it looks at the rest of its form.
        first = {(words[0], "--trials" in words): (words, read) for words, read in reversed(FORMS)}
        for words, read in first.values():
            assert not looked_at(b, filled(words, "s", "0" * 16), read, b.db.name), f"{b.db.name}: {words} answered"
        assert (b.db.read_bytes() if b.db.exists() else None) == before, f"{b.db} was changed"


CASES = [every_command_on_every_database, empty_files_are_said_to_be_so]

if __name__ == "__main__":
    bench.play(CASES, answers_test.Bench)
