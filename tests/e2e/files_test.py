#!/usr/bin/env python3
"""files_test.py BIN: the database as others meet it: opened unchanged by the sqlite3 shell and by Datasette; a limit on the size of files;
a holder that says nothing. Files of other versions are in tests/unit/store."""
import contextlib
import importlib.util
import json
import pathlib
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import urllib.request

import answers_test
import bench
import processes
from answers_test import row

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


CASES = [the_sqlite3_shell_opens_it_unchanged, datasette_opens_it_unchanged, a_file_size_limit_is_a_full_disk,
         clean_leaves_a_silent_holder_alone_and_says_so_by_its_exit_code]

if __name__ == "__main__":
    bench.play(CASES, answers_test.Bench)
