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
 each command once: it opens the file before it looks at the form  """Metrics that are absent, and a loss that is no number (JSON has none: it is stored as NULL or as text)."""
 each command once: it opens the file before it looks at the form  bare = row(1, 1000)
 each command once: it opens the file before it looks at the form  bare["metrics"] = {"tokens_per_s_gpu": 1000.0}
 each command once: it opens the file before it looks at the form  odd = row(2, 900)
 each command once: it opens the file before it looks at the form  odd["metrics"].update(loss_first=None, mfu=None, cost_per_mt=None)
 each command once: it opens the file before it looks at the form  zero = row(4, 1)
 each command once: it opens the file before it looks at the form  zero["metrics"] = {"step_ms": 0.0, "tokens_per_s_gpu": 0.0, "mfu": 0.0}
 each command once: it opens the file before it looks at the form  return [bare, odd, zero]


def odd_rows():
 each command once: it opens the file before it looks at the form  labels = json.dumps({"kind <b>": ODD, "quote'\"": "漢字"})
 each command once: it opens the file before it looks at the form  return [row(n, 900 + n, model=ODD if n < 4 else "m", labels=labels) for n in (1, 2, 4)] + [row(8, 0, "crash", model=ODD)]


# Kind of database -> its rows; None: a file that is empty, or one without any sweep.
DATABASES = {
 each command once: it opens the file before it looks at the form  "none": lambda: [],
 each command once: it opens the file before it looks at the form  "pending": lambda: [row(1, 0, "pending")],
 each command once: it opens the file before it looks at the form  "one": lambda: [row(1, 1000)],
 each command once: it opens the file before it looks at the form  "all-oom": lambda: [row(n, 0, "oom") for n in (1, 2, 4)],
 each command once: it opens the file before it looks at the form  "all-pruned": lambda: [row(n, 0, "pruned") for n in (1, 2)],
 each command once: it opens the file before it looks at the form  "null": nan_rows,
 each command once: it opens the file before it looks at the form  ODD: odd_rows,
}


def as_json(text):
 each command once: it opens the file before it looks at the form  json.loads(text)


def as_json_lines(text):
 each command once: it opens the file before it looks at the form  for line in text.splitlines():
 each command once: it opens the file before it looks at the form      json.loads(line)


def as_csv(text):
 each command once: it opens the file before it looks at the form  lines = list(csv.reader(io.StringIO(text)))
 each command once: it opens the file before it looks at the form  assert lines and all(len(line) == len(lines[0]) for line in lines), "rows of different width"


def as_svg(text):
 each command once: it opens the file before it looks at the form  xml.etree.ElementTree.fromstring(text)
 each command once: it opens the file before it looks at the form  no_markup(text)


def no_markup(text):
 each command once: it opens the file before it looks at the form  assert "<script>document" not in text and "<img" not in text and not re.search(r"<[^>]*\sonerror=", text), "markup of a label"


def as_text(text):
 each command once: it opens the file before it looks at the form  bad = {c for c in text if (ord(c) < 32 and c not in "\n\t") or ord(c) in (0x7f, 0x202e)}
 each command once: it opens the file before it looks at the form  assert not bad, f"control characters {bad}"


def as_png(raw):
 each command once: it opens the file before it looks at the form  assert raw.startswith(b"\x89PNG")


# words of a command ("@": the name of the sweep) -> how its standard output, or the file behind -o, is read
FORMS = [
 each command once: it opens the file before it looks at the form  (["best"], as_text), (["best", "--json"], as_json), (["best", "--yaml"], as_text), (["best", "--by", "micro_batch_size"], as_text),
 each command once: it opens the file before it looks at the form  (["best", "--by", "hardware,seq_len", "--metric", "peak_allocated_bytes", "--headroom", "5%"], as_text),
 each command once: it opens the file before it looks at the form  *[(["best", "--by", "hardware", "--for", tool], as_text) for tool in ("torchtitan", "Megatron-LM", "nanotron", "DeepSpeed")],
 each command once: it opens the file before it looks at the form  *[(["table", kind], as_text) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
 each command once: it opens the file before it looks at the form  *[(["table", kind, "--json"], as_json) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
 each command once: it opens the file before it looks at the form  *[(["table", kind, "--csv"], as_csv) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
 each command once: it opens the file before it looks at the form  *[(["table", kind, "--markdown"], as_text) for kind in ("cost", "batch", "scaling", "max-batch", "max-model", "stages")],
 each command once: it opens the file before it looks at the form  (["compare", "@", "@"], as_text), (["compare", "@", "@", "--json"], as_json), (["compare", "@", "@", "-o", "out.html"], no_markup),
 each command once: it opens the file before it looks at the form  (["explain", "#", "@", "-o", "out.html"], no_markup), (["explain", "#", "@"], as_text), (["compare", "@", "--trials", "#,#", "-o", "out.html"], no_markup), (["status"], as_text), (["query", "outcomes"], as_text), (["query", "reasons"], as_text), (["query", "best", "--json"], as_json),
 each command once: it opens the file before it looks at the form  (["query", "select * from results", "--csv"], as_csv), (["query", "select * from results", "--json"], as_json),
 each command once: it opens the file before it looks at the form  (["export", "csv"], as_csv), (["export", "json"], as_json), (["export", "jsonl"], as_json_lines), (["export", "bencher"], as_json),
 each command once: it opens the file before it looks at the form  (["export", "github-benchmark", "--metric", "step_ms"], as_json),
 each command once: it opens the file before it looks at the form  (["report", "-o", "out.html"], no_markup), (["heatmap", "-o", "out.html"], no_markup),
 each command once: it opens the file before it looks at the form  (["heatmap", "-o", "out.svg"], as_svg), (["heatmap", "-o", "out.png"], as_png), (["heatmap", "-o", "out.csv"], as_csv),
 each command once: it opens the file before it looks at the form  (["heatmap", "--rows", "micro_batch_size", "--cols", "nodes", "--value", "mfu", "-o", "out.svg"], as_svg),
]


def looked_at(b, words, read, where):
 each command once: it opens the file before it looks at the form  """Runs it; exit 0 with output that can be read, or 1 or 2 with a sentence on standard error and no output."""
 each command once: it opens the file before it looks at the form  for old in b.folder.glob("out.*"):
 each command once: it opens the file before it looks at the form      old.unlink()
 each command once: it opens the file before it looks at the form  command = [str(b.bin / "sweep"), *words, "--db", str(b.db)]
 each command once: it opens the file before it looks at the form  done = subprocess.run(command, capture_output=True, timeout=120, cwd=b.folder, env={**os.environ, "XDG_CONFIG_HOME": str(b.folder)})
 each command once: it opens the file before it looks at the form  said = done.stderr.decode("utf-8")
 each command once: it opens the file before it looks at the form  at = f"{where}: sweep {' '.join(words)}: exit {done.returncode}: {said[:500]}"
 each command once: it opens the file before it looks at the form  assert "internal fault" not in said and done.returncode in (0, 1, 2), at
 each command once: it opens the file before it looks at the form  as_text(said)
 each command once: it opens the file before it looks at the form  target = b.folder / words[words.index("-o") + 1] if "-o" in words else None
 each command once: it opens the file before it looks at the form  raw = done.stdout if target is None else target.read_bytes() if target.exists() else b""
 each command once: it opens the file before it looks at the form  if done.returncode != 0:
 each command once: it opens the file before it looks at the form      assert len(said.split()) >= 4 and not raw, f"{at}: no clear sentence, or output beside it"
 each command once: it opens the file before it looks at the form      return False
 each command once: it opens the file before it looks at the form  try:
 each command once: it opens the file before it looks at the form      read(raw if read is as_png else raw.decode("utf-8"))
 each command once: it opens the file before it looks at the form  except Exception as error:
 each command once: it opens the file before it looks at the form      raise AssertionError(f"{at}\n{error}\n{raw[:1500]!r}") from error
 each command once: it opens the file before it looks at the form  return True


def every_command_on_every_database(b):
 each command once: it opens the file before it looks at the form  for name, rows in DATABASES.items():
 each command once: it opens the file before it looks at the form      b.db = b.folder / f"db{len(list(b.folder.glob('db*.db')))}.db"
 each command once: it opens the file before it looks at the form      b.make(name, rows(), question=ODD)
 each command once: it opens the file before it looks at the form      with contextlib.closing(sqlite3.connect(b.db)) as connection:
 each command once: it opens the file before it looks at the form          trial, = connection.execute("select min(t.id) from plan_entry p join trial t on t.key = p.trial").fetchone()
 each command once: it opens the file before it looks at the form      answered = sum(looked_at(b, [name if w == "@" else w.replace("#", trial or "0") for w in words], read, name[:12]) for words, read in FORMS)
 each command once: it opens the file before it looks at the form      print(f"   {name[:12]!r}: {answered} of {len(FORMS)} answered, the others said why not", flush=True)
 each command once: it opens the file before it looks at the form      if name in ("one", ODD):
 each command once: it opens the file before it looks at the form          assert answered == len(FORMS), name


def empty_files_are_said_to_be_so(b):
 each command once: it opens the file before it looks at the form  empty, foreign = b.folder / "empty.db", b.folder / "foreign.db"
 each command once: it opens the file before it looks at the form  sqlite3.connect(empty).close()
 each command once: it opens the file before it looks at the form  empty.touch()
 each command once: it opens the file before it looks at the form  with sqlite3.connect(foreign) as other:
 each command once: it opens the file before it looks at the form      other.execute("create table t (x)")
 each command once: it opens the file before it looks at the form  for database in (empty, foreign, b.folder / "absent.db"):
 each command once: it opens the file before it looks at the form      b.db = database
 each command once: it opens the file before it looks at the form      before = b.db.read_bytes() if b.db.exists() else None
 each command once: it opens the file before it looks at the form      for words, read in {words[0]: (words, read) for words, read in FORMS}.values():  # each command once: it opens the file before it looks at the form
 each command once: it opens the file before it looks at the form          assert not looked_at(b, words, read, b.db.name), f"{b.db.name}: {words} answered"
 each command once: it opens the file before it looks at the form      assert (b.db.read_bytes() if b.db.exists() else None) == before, f"{b.db} was changed"


CASES = [every_command_on_every_database, empty_files_are_said_to_be_so]

if __name__ == "__main__":
 each command once: it opens the file before it looks at the form  bench.play(CASES, answers_test.Bench)
