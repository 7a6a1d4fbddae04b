#!/usr/bin/env python3
"""files_test.py BIN: the database as others meet it: opened unchanged by the sqlite3 shell and by Datasette; a file of
version 1 merged and upgraded; a file of a version to come refused."""
import contextlib
import importlib.util
import json
import pathlib
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

import answers_test
import processes
from answers_test import row

SOURCE = pathlib.Path(__file__).resolve().parents[2]
COUNT = "select count(*) from results where outcome = 'ok'"


def the_sqlite3_shell_opens_it_unchanged(b):
    shell = shutil.which("sqlite3")
    if shell is None:
        print("skipped  the sqlite3 shell: not installed")
        return
    b.make("s", [row(n, 1000 + n) for n in (1, 2)])
    before = b.db.read_bytes()
    for words in ([COUNT], [".schema results"], ["pragma integrity_check"]):
        done = subprocess.run([shell, b.db, *words], capture_output=True, text=True, check=True)
        assert done.stdout.strip() and not done.stderr, done
    assert b.db.read_bytes() == before, "the sqlite3 shell had to change the database"


def datasette_opens_it_unchanged(b):
    if importlib.util.find_spec("datasette") is None:
        print("skipped  Datasette: the Python package is not here (scripts/setup test installs it)")
        return
    b.make("s", [row(n, 1000 + n) for n in (1, 2)] + [row(4, 0, "oom")])
    before = b.db.read_bytes()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    served = subprocess.Popen([sys.executable, "-m", "datasette", "serve", b.db, "--host", "127.0.0.1", "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def ask(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
            return json.load(answer)

    def up():
        assert served.poll() is None, served.stderr.read()[-2000:]
        with contextlib.suppress(OSError):
            return bool(ask("-/versions.json"))
    try:
        processes.wait_for(up, 120, "Datasette is up")
        found = ask("r/results.json?_shape=objects&_sort=micro_batch_size")["rows"]
        assert [(r["micro_batch_size"], r["outcome"]) for r in found] == [(1, "ok"), (2, "ok"), (4, "oom")], found
        assert ask("r.json?sql=select+count(*)+as+n+from+results&_shape=array") == [{"n": 3}]
    finally:
        served.terminate()
        served.wait(timeout=30)
    assert b.db.read_bytes() == before, "Datasette had to change the database"


def migrated_columns():
    """(table, column) of every column that a later migration adds by itself."""
    later = sorted((SOURCE / "schema" / "sqlite").glob("*.sql"))[1:]
    return {pair for file in later for pair in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", file.read_text())}


def version_1_of(db, old):
    """The same results in a file as version 1 made it: its migration's SQL, and the axes and metrics that were added since."""
    with contextlib.closing(sqlite3.connect(old)) as to:
        to.executescript((SOURCE / "schema" / "sqlite" / "001_initial.sql").read_text())
        tables = [name for (name,) in to.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")]
        to.execute("attach ? as new", [str(db)])
        to.execute("pragma foreign_keys = off")
        later = migrated_columns()
        for table in tables:
            have = {c[1] for c in to.execute(f"pragma table_info({table})")}
            columns = [c for c in to.execute(f"pragma new.table_info({table})") if (table, c[1]) not in later]
            for c in columns:
                if c[1] not in have:
                    to.execute(f"alter table {table} add column \"{c[1]}\" {c[2]}" + (f" default {c[4]}" if c[4] else ""))
            names = ", ".join(f'"{c[1]}"' for c in columns)
            if names:  # a later version may be without the table
                to.execute(f"insert into {table} ({names}) select {names} from new.{table}")
        application = to.execute("pragma new.application_id").fetchone()[0]
        to.commit()
        to.execute(f"pragma application_id = {application}")
        to.execute("pragma user_version = 1")
        to.commit()
    return old


def a_file_of_version_1_is_merged_and_upgraded(b):
    b.make("s", [row(n, 1000 + n) for n in (1, 2)] + [row(4, 0, "oom")])
    old = version_1_of(b.db, b.folder / "old.db")
    wanted = b.sweep("best", "--json").stdout
    before = old.read_bytes()
    b.db = b.folder / "into.db"
    b.sweep("merge", b.db, old, db=False)
    assert old.read_bytes() == before, "a file that is merged from is only read"
    assert json.loads(b.sweep("query", COUNT, "--json").stdout) == [{"count(*)": 2}]
    assert strip(b.sweep("best", "--json").stdout) == strip(wanted)
    b.db = old  # opened for reading it is upgraded or read as it is; either way it answers the same
    assert strip(b.sweep("best", "--json").stdout) == strip(wanted)


def strip(text):
    """Without what names the file's own past."""
    return [{k: v for k, v in group.items() if k != "measured"} for group in json.loads(text)]


def a_file_of_a_version_to_come_is_refused(b):
    b.make("s", [row(1, 1000)])
    with contextlib.closing(sqlite3.connect(b.db)) as db:
        version = db.execute("pragma user_version").fetchone()[0] + 1
        db.execute(f"pragma user_version = {version}")
    before = b.db.read_bytes()
    for words in (["best"], ["query", COUNT], ["report", "-o", "x.html"], ["export", "csv"]):
        said = b.sweep(*words, code=2).stderr
        assert re.search(rf"version {version}\b.*newer sweep", said), said
    into = b.folder / "into.db"
    assert f"version {version}" in b.sweep("merge", into, b.db, code=2, db=False).stderr
    assert b.db.read_bytes() == before


def a_file_size_limit_is_a_full_disk(b):
    """Under `ulimit -f`, people see a message, not the signal that would end the program."""
    b.make("s", [row(n, 1000 + n) for n in (1, 2)])
    into = b.folder / "into.db"
    done = subprocess.run([b.bin / "sweep", "merge", into, b.db], capture_output=True, text=True, timeout=120, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)))
    assert done.returncode == 4, done
    assert not into.exists()


def clean_leaves_a_silent_holder_alone_and_says_so_by_its_exit_code(b):
    """It may hold allocations: that nothing is left is not known."""
    b.make("s", [row(n, 1000 + n) for n in (1, 2)])
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.closing(sqlite3.connect(b.db)) as db, db:
        db.execute("delete from lease")
        db.execute("insert into lease(sweep, host, boot_id, pid, pid_start, token, beats, heartbeat_unix_ns) select id, 'elsewhere', ?, 1, 1, "
                   "'t', 1, 1 from sweep", (boot,))
    b.sweep("clean", code=1)
    with contextlib.closing(sqlite3.connect(b.db)) as db, db:
        db.execute("delete from lease")
    b.sweep("clean")


CASES = [the_sqlite3_shell_opens_it_unchanged, datasette_opens_it_unchanged, a_file_of_version_1_is_merged_and_upgraded,
         a_file_of_a_version_to_come_is_refused, a_file_size_limit_is_a_full_disk,
         clean_leaves_a_silent_holder_alone_and_says_so_by_its_exit_code]

if __name__ == "__main__":
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="sweep-files-") as scratch:
            case(answers_test.Bench(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(scratch)))
            print("ok      ", case.__name__, flush=True)
