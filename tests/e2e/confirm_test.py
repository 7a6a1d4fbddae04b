#!/usr/bin/env python3
"""confirm_test.py BIN: fake ranks run a sweep; `status --watch` follows it on a terminal and in a pipe; `confirm` measures its best
again in allocations of their own, goes on after an interruption, and adds nothing once it has enough."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios

import bench
import database
import finished_sweep
from processes import wait_for

COLUMNS, ROWS = 64, 12


class Bench(bench.Bench):
    def rows(self, sql):
        return database.rows(self.db, sql)


def on_a_terminal(words):
    """All that a program writes to a terminal of COLUMNS x ROWS."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.execv(words[0], words)
    said = b""
    while True:
        assert select.select([terminal], [], [], 120)[0], "silent for two minutes"
        try:
            more = os.read(terminal, 1 << 16)
        except OSError:  # the terminal's way to say that its last writer is gone
            break
        if not more:
            break
        said += more
    os.close(terminal)
    return said.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def shown(said):
    """The screen after the escapes that Board uses, and its widest line."""
    screen, at, widest = {}, 0, 0
    for piece in re.findall(r"\x1b\[\d*[A-Z]|\r?\n|[^\x1b\r\n]+", said):
        if re.fullmatch(r"\x1b\[(\d+)F", piece):
            at -= int(piece[2:-1])
        elif piece == "\x1b[J":
            screen = {line: text for line, text in screen.items() if line < at}
        elif piece.endswith("\n"):
            at += 1
        elif not piece.startswith("\x1b"):
            screen[at] = piece
            widest = max(widest, len(piece))
    return [screen[line] for line in sorted(screen)], widest


def a_run_is_followed(b):
    grid = b.folder / "grid.yaml"
    grid.write_text(finished_sweep.GRID.replace("STEPS", "700"))
    run = subprocess.Popen(b.words("run", grid, "--db", b.db, "--on", "local", "--rank", b.bin / "fake_rank", "--quiet", "--slots", "2"),
                           cwd=b.folder)
    wait_for(lambda: b.db.exists() and subprocess.run(b.words("status", "--db", b.db), capture_output=True).returncode == 0
             and b.rows("select 1 from lease"), 60, "a run")
    piped = subprocess.Popen(b.words("status", "--watch", "--db", b.db), stdout=subprocess.PIPE, text=True)
    said, code = on_a_terminal(b.words("status", "--watch", "--db", b.db))
    assert run.wait(timeout=300) == 0 and code == 0, (run.returncode, code, said)
    lines, widest = shown(said)
    assert re.search(r"\x1b\[\d+F", said), "nothing was drawn in place"
    assert widest < COLUMNS and len(lines) < ROWS, (widest, lines)
    assert lines[0].startswith("sweep") and any(line.startswith("outcomes") for line in lines), lines
    assert re.search(r"held +a0001-\w+ local, 1 node \(", said), said
    plain = piped.communicate(timeout=120)[0]
    assert "\x1b" not in plain and piped.returncode == 0, plain
    assert plain.splitlines() and all(" done" in line for line in plain.splitlines()), plain


def the_best_are_confirmed(b):
    common = ("--db", b.db, "--rank", b.bin / "fake_rank", "--slots", "2")
    first = b.sweep("confirm", "--top", "2", "--steps", "20", "--repeats", "2", *common)
    assert "the ranking holds" in first.stdout or "cannot be distinguished" in first.stdout, first.stdout
    assert "allocation 3 of 3" in first.stderr, first.stderr
    name = finished_sweep.NAME + "-confirm"
    attempts = b.rows(f"select a.allocation, a.entry, a.request from attempt a join allocation l on l.id = a.allocation join sweep s "
                      f"on s.id = l.sweep where s.name = '{name}' order by a.id")
    assert len(attempts) == 6 and len({a for a, *_ in attempts}) == 3, attempts
    begins = [attempts[i][1] for i in (0, 2, 4)]
    assert begins[0] != begins[1] and begins[0] == begins[2], f"the order does not rotate: {attempts}"
    assert all(json.loads(r)["measure"]["steps"] == 20 and json.loads(r)["measure"]["repeats"] == 2 for *_, r in attempts)
    link, = b.rows(f"select options_json from sweep where name = '{name}'")
    assert json.loads(link[0])["confirms"] == finished_sweep.NAME
    best, = json.loads(b.sweep("best", name, "--json", "--db", b.db).stdout)
    assert (best["sweep"], best["confirms"], best["allocations"]) == (name, finished_sweep.NAME, 3), best
    again = b.sweep("confirm", "--top", "2", "--steps", "20", "--repeats", "2", *common)
    document = json.loads(b.sweep("confirm", "--top", "2", "--steps", "20", "--repeats", "2", "--json", *common).stdout)
    assert document["holds"] is True and document["ended_early"] is None and document["metric"] == "tokens_per_s_gpu", document
    assert [(t["standing"] == "leader", t["allocations"]) for t in document["trials"]] == [(True, 3), (False, 3)], document
    assert again.stdout == first.stdout and len(b.rows("select 1 from allocation")) == 4, "measured again though it had enough"
    database.check(b.db)


def an_interrupted_one_goes_on(b):
    common = ("confirm", finished_sweep.NAME, "--top", "2", "--steps", "300", "--repeats", "2", "--db", b.db, "--rank",
              b.bin / "fake_rank")
    before = len(b.rows("select 1 from result"))
    running = subprocess.Popen(b.words(*common), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(b.rows("select 1 from result")) > before, 120, "a first result")
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130 and "goes on from here" in said, (running.returncode, said)
    assert "the ranking holds" in (done := b.sweep(*common).stdout) or "cannot be distinguished" in done, done
    database.check(b.db)


def refusals_say_the_way_out(b):
    assert "step time" in b.sweep("confirm", "--db", b.db, "--metric", "peak_allocated_bytes", code=2).stderr
    assert "3" in b.sweep("confirm", "--db", b.db, "--allocations", "2", code=2).stderr
    assert "holds" in b.sweep("confirm", "no-such-sweep", "--db", b.db, code=2).stderr


def main(bin_dir):
    with tempfile.TemporaryDirectory() as scratch:
        b = Bench(pathlib.Path(bin_dir).resolve(), pathlib.Path(scratch))
        a_run_is_followed(b)
        the_best_are_confirmed(b)
        an_interrupted_one_goes_on(b)
        refusals_say_the_way_out(b)
    print("confirm: a run is followed, its best are measured again in allocations of their own")


if __name__ == "__main__":
    main(*sys.argv[1:])
