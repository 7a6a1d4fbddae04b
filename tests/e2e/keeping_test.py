#!/usr/bin/env python3
"""keeping_test.py BIN_DIR: `sweep list`, `backup` and `delete`, and the notices of a run, around sweeps of a program that needs no PyTorch."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import unittest

import sweep_folder
from loopback_server import LoopbackServer
from processes import wait_for

BIN = pathlib.Path(sys.argv[1]).resolve()
TRAINER = """
import os, pathlib, sys, time
import sweep_trial
for i in range(4):
    sweep_trial.step(tokens=100)
    if sys.argv[1] == "crash": sys.exit(7)
    while sys.argv[1] == "wait" and not os.path.exists(sys.argv[2]):
        pathlib.Path(sys.argv[2] + ".begun").touch()
        time.sleep(0.05)
"""
GRID = """name: {name}
workload:
  command: [{python}, {folder}/train.py, "{{how}}", {folder}/go]
  axes: {{how: {{type: text, default: ok}}}}
base: {{hardware: cpu}}
grid: {{how: [{values}]}}
measure: {{warmup_steps: 1, steps: 3}}
limits: {{retries_crash: 0, hang_seconds: 120}}
"""


class Receiver(http.server.BaseHTTPRequestHandler):
    bodies: list = []

    def do_POST(self):
        Receiver.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class KeepingTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        self.db = self.folder / "k.db"
        (self.folder / "train.py").write_text(TRAINER)

    def grid(self, name, *values):
        file = self.folder / f"{name}.yaml"
        file.write_text(GRID.format(name=name, python=sys.executable, folder=self.folder, values=", ".join(values)))
        return file

    def words(self, *words):
        return [str(each) for each in (BIN / "sweep", *words, "--db", self.db)]

    def sweep(self, *words, code=0):
        done = subprocess.run(self.words(*words), capture_output=True, text=True, timeout=120, cwd=self.folder, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}\n{done.stderr}")
        return done

    def listed(self):
        return {each["sweep"]: each for each in json.loads(self.sweep("list", "--json").stdout)}

    def test_a_sweep_is_listed_backed_up_and_deleted(self):
        self.sweep("run", self.grid("one", "ok"))
        self.sweep("run", self.grid("two", "ok", "crash"), code=1)
        listed = self.listed()
        self.assertEqual({name: (each["kind"], each["trials"], each["ok"]) for name, each in listed.items()},
                         {"one": ("measured", 1, 1), "two": ("measured", 2, 1)})
        copy = self.folder / "copy.db"
        self.sweep("backup", copy)
        self.sweep("backup", copy, code=2)
        self.assertEqual([path.name for path in self.folder.glob("copy*")], ["copy.db"])
        spool = pathlib.Path(f"{self.db}.spool")
        folders = len(list(spool.iterdir()))
        self.sweep("delete", "two", code=2)  # nobody can be asked
        self.assertEqual(set(self.listed()), {"one", "two"})
        self.sweep("delete", "two", "--yes")
        self.assertEqual(set(self.listed()), {"one"})
        self.assertLess(len(list(spool.iterdir())), folders)
        rows = json.loads(self.sweep("query", "select sweep, outcome from results", "--json").stdout)
        self.assertEqual(rows, [{"sweep": "one", "outcome": "ok"}])
        self.db = copy
        self.assertEqual(set(self.listed()), {"one", "two"})

    def test_a_run_is_copied_and_not_deleted_while_it_goes_on(self):
        run = subprocess.Popen(self.words("run", self.grid("long", "ok", "wait")), stderr=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(lambda: run.poll() is None and (run.send_signal(signal.SIGKILL), run.wait()))
        wait_for(lambda: (self.folder / "go.begun").exists(), 60, "the trial")
        self.assertTrue(self.listed()["long"]["run_by"])
        self.sweep("delete", "long", "--yes", code=2)
        copy = self.folder / "copy.db"
        self.sweep("backup", copy)
        (self.folder / "go").touch()
        self.assertEqual(run.wait(timeout=60), 0)
        self.assertEqual((self.listed()["long"]["ok"], self.listed()["long"]["run_by"]), (2, ""))
        self.db = copy
        self.assertEqual(self.listed()["long"]["trials"], 2)

    def test_a_run_that_is_stopped_ends_with_the_command_that_goes_on(self):
        run = subprocess.Popen(self.words("run", self.grid("long", "wait", "ok")), stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(lambda: run.poll() is None and (run.send_signal(signal.SIGKILL), run.wait()))
        wait_for(lambda: (self.folder / "go.begun").exists(), 60, "the trial")
        self.sweep("stop", "long", "--now")
        last = run.communicate(timeout=60)[1].splitlines()[-1]
        (self.folder / "go").touch()
        command = re.search("`sweep ([^`]*)`", last)
        self.assertTrue(command, last)
        words = shlex.split(command.group(1))
        self.assertEqual(words[:2], ["resume", "long"])
        self.assertEqual(subprocess.run([BIN / "sweep", *words], cwd=self.folder, capture_output=True, timeout=120).returncode, 0)
        self.assertEqual(self.listed()["long"]["ok"], 2)

    def test_a_run_tells_of_its_first_failure_and_its_end(self):
        server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), thread.join(), server.server_close()))
        told = self.folder / "told.jsonl"
        done = self.sweep("run", self.grid("noisy", "ok", "crash"), "--notify", f"http://127.0.0.1:{server.server_port}/secret-path",
                          "--notify-command", f"cat >>{told}", code=1)
        by_command = [json.loads(line) for line in told.read_text().splitlines()]
        self.assertEqual(by_command, Receiver.bodies)
        self.assertEqual([each["event"] for each in by_command], ["first_failure", "end"])
        self.assertEqual((by_command[0]["sweep"], by_command[0]["outcome"]), ("noisy", "crash"))
        self.assertEqual((by_command[1]["end"], by_command[1]["trials"], by_command[1]["outcomes"]), ("done", 2, {"ok": 1, "crash": 1}))
        self.assertNotIn("secret-path", done.stderr)
        self.assertNotIn(b"secret-path", self.db.read_bytes())

    def test_a_notice_is_delivered_once_the_server_says_so_whatever_it_sends_then(self):
        class Endless(LoopbackServer):
            def answer(self, request, raw):
                request.send_response({"/ok": 200, "/stalls": 204, "/bad": 500}[request.path])
                request.end_headers()
                with contextlib.suppress(OSError):
                    while not self.over.is_set():
                        request.wfile.write(b"x" * 65536) if request.path != "/stalls" else self.over.wait(1)

        server = Endless()
        self.addCleanup(server.close)
        for name, path, said in ("fine", "/ok", False), ("slow", "/stalls", False), ("spoilt", "/bad", True):
            done = self.sweep("run", self.grid(name, "ok"), "--notify", server.base + path)
            self.assertEqual("--notify" in done.stderr, said, done.stderr)

    def test_a_notice_that_cannot_be_delivered_changes_nothing(self):
        self.sweep("run", self.grid("deaf", "ok"), "--notify", "http://127.0.0.1:9/x", "--notify-command", "exit 3")
        self.sweep("run", self.grid("odd", "ok"), "--notify", "ftp://x", code=2)
        self.assertEqual(set(self.listed()), {"deaf"})


if __name__ == "__main__":
    os.environ.pop("SWEEP_NOTIFY", None)
    unittest.main(argv=sys.argv[:1], verbosity=2)
