#!/usr/bin/env python3
"""interrupt_test.py BIN GRID: Ctrl-C (SIGINT to the whole foreground group, as a terminal sends it).

Once: running attempts end, nothing is left, exit 130, and `sweep resume` finishes the sweep. Twice: at once, though the
running attempt has minutes to go; nothing is left, exit 130.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import database
import processes

START_SECONDS = 120  # until the first rank is there; more is a hang
END_SECONDS = 60     # far more than ending takes, far less than the long trial would

LONG_GRID = """name: long
question: Does a second Ctrl-C end an attempt that has minutes to go?
model: {family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256,
        tie_embeddings: false}
base: {hardware: cpu, nodes: 1, gpus_per_node: 2, seq_len: 64, global_batch_size: 2}
grid: {micro_batch_size: [1]}
measure: {warmup_steps: 1, steps: 100000}
"""


class Started:
    def __init__(self, bin_dir, folder, grid):
        self.program, self.folder = bin_dir / "sweep", folder
        self.db, self.log = folder / "interrupt.db", folder / "interrupt.log"
        self.environment, self.mark = processes.marked_environment()
        self.process = self.start("run", str(grid), "--on", "local")

    def start(self, *words):
        with self.log.open("ab") as log:
            return subprocess.Popen([str(self.program), *words, "--db", str(self.db)], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, env=self.environment, start_new_session=True, cwd=self.folder)

    def wait_for_rank(self):
        def there():
            assert self.process.poll() is None, f"sweep ended with {self.process.returncode} before a rank was seen"
            return processes.by_role(self.mark)["rank"]
        processes.wait_for(there, START_SECONDS, "a rank runs")

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)


def interrupt_once(bin_dir, grid, folder):
    started = Started(bin_dir, folder, grid)
    try:
        started.wait_for_rank()
        started.interrupt()
        code = started.process.wait(END_SECONDS)
        assert code == 130, f"exit {code}, 130 expected"
        processes.wait_until_none(started.mark)
        database.check(started.db)
        left_open = database.rows(started.db, "select id from attempt where id not in (select attempt from result)")
        assert not left_open, f"attempts without a result: {left_open}"
        assert database.unfinished(started.db), "the sweep was over before the signal came"
        code = started.start("resume").wait(600)
        assert code == 0, f"resume exited {code}"
        assert not database.unfinished(started.db), "resume left trials without a final result"
        processes.wait_until_none(started.mark)
        database.check(started.db)
    except BaseException:
        give_up(started)
        raise


def interrupt_twice(bin_dir, folder):
    grid = folder / "long.yaml"
    grid.write_text(LONG_GRID)
    started = Started(bin_dir, folder, grid)
    try:
        started.wait_for_rank()
        started.interrupt()
        # The second one must find the first one taken: sweep says so on stderr, or has ended already.
        processes.wait_for(lambda: started.process.poll() is not None or b"nterrupt" in started.log.read_bytes(), END_SECONDS,
                           "sweep says that it was interrupted")
        begun = time.monotonic()
        if started.process.poll() is None:
            started.interrupt()
        code = started.process.wait(END_SECONDS)
        print(f"ended {time.monotonic() - begun:.2f} s after the second Ctrl-C")
        assert code == 130, f"exit {code}, 130 expected"
        processes.wait_until_none(started.mark)
        database.check(started.db)
    except BaseException:
        give_up(started)
        raise


def give_up(started):
    print(started.log.read_text(errors="replace")[-6000:])
    for process in processes.of_mark(started.mark):
        print("still running:", process)
        os.kill(process.pid, signal.SIGKILL)


def main():
    bin_dir, grid = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    for name, play in (("once", lambda f: interrupt_once(bin_dir, grid, f)), ("twice", lambda f: interrupt_twice(bin_dir, f))):
        with tempfile.TemporaryDirectory(prefix="sweep-interrupt-") as folder:
            play(pathlib.Path(folder))
            print(f"Ctrl-C {name}: as it should be", flush=True)


if __name__ == "__main__":
    main()
