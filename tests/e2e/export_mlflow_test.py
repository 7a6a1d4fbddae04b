#!/usr/bin/env python3
"""export_mlflow_test.py BIN: a finished sweep goes to a genuine `mlflow server` (SQLite behind it) and is read back by the genuine
MlflowClient, value by value; exporting again changes nothing; faults on the way, a lost answer to runs/create and a kill in the
middle leave each run once. Exit 77: the mlflow package is not here."""
import contextlib
import http.client
import importlib.util
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

import finished_sweep
import processes
from finished_sweep import assert_same
from loopback_server import LoopbackServer

START_SECONDS = 240  # the server imports much; on a busy machine that takes a while
CREATE = "/api/2.0/mlflow/runs/create"
LOG = "/api/2.0/mlflow/runs/log-batch"


class Server:
    """`mlflow server` in its own process group, on a port that was free."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = folder / "mlflow.log"
        words = ["server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1", "--backend-store-uri",
                 f"sqlite:///{folder}/ml.db", "--artifacts-destination", str(folder / "artifacts")]
        settings = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "mlflow", *words], stdout=log, stderr=log, env=settings,
                                            start_new_session=True, cwd=folder)

    def healthy(self):
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).status == 200
        except OSError:
            return False

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Gate(LoopbackServer):
    """Stands before the server, hands requests through and spoils the ones it is told to."""

    def __init__(self, port):
        self.port, self.headers = port, []
        super().__init__()

    def answer(self, request, body):
        path = request.path.partition("?")[0]
        self.headers.append(request.headers.get("Authorization"))
        fault = self.next_fault(path)
        if fault in ("409", "429", "500"):
            return self.say(request, int(fault), b"<html>injected</html>")
        if fault == "cut":
            return self.cut(request)
        upstream = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        upstream.request(request.command, request.path, body, {"Content-Type": request.headers.get("Content-Type", "")})
        reply = upstream.getresponse()
        raw = reply.read()
        if fault == "no answer":
            self.over.wait(60)
        if fault:
            return self.cut(request)
        self.say(request, reply.status, raw)


class Bench:
    def __init__(self, bin_dir, folder, port):
        from mlflow import MlflowClient
        self.bin, self.folder, self.port = bin_dir, folder, port
        self.client = MlflowClient(f"http://127.0.0.1:{port}")
        self.made = finished_sweep.make(bin_dir, folder, steps=180)
        self.expected, self.copies = finished_sweep.expected(self.made), 0
        for trial in self.expected.values():
            assert 1000 < sum(map(len, trial["history"])) < 1900, "a trial's metrics are meant to need two requests"

    def fresh(self):
        """A copy of the database that has never been exported, and an experiment of its own."""
        self.copies += 1
        copy = self.folder / f"copy{self.copies}.db"
        shutil.copy(self.made, copy)
        return copy, f"exp {self.copies} %ü"

    def words(self, db, experiment, uri, more):
        return [self.bin / "sweep", "export", "mlflow", "--db", db, "--uri", uri, "--experiment", experiment, *more]

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW") and not k.lower().endswith("_proxy")}
        return {**kept, "HOME": str(self.folder), **more}

    def export(self, db, experiment, *more, uri=None, code=0, **environment):
        uri = uri or f"http://127.0.0.1:{self.port}"
        done = subprocess.run(self.words(db, experiment, uri, more), capture_output=True, text=True, timeout=240,
                              env=self.environment(**environment), cwd=self.folder)
        assert done.returncode == code, f"exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
        return done.stderr

    def state(self, experiment):
        """run id -> all that the genuine client reads of it."""
        found = self.client.get_experiment_by_name(experiment)
        out = {}
        for run in self.client.search_runs([found.experiment_id]) if found else []:
            id, data = run.info.run_id, run.data
            metrics = {m: [(p.step, p.value, p.timestamp) for p in self.client.get_metric_history(id, m)] for m in data.metrics}
            files = {f.path: f.file_size for f in self.client.list_artifacts(id)}
            out[id] = {"name": run.info.run_name, "status": run.info.status, "ended": run.info.end_time, "params": dict(data.params),
                       "tags": dict(data.tags), "metrics": {k: sorted(v) for k, v in metrics.items()}, "files": files}
        return out


def as_text(value):
    return value if isinstance(value, str) else {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def assert_complete(b, state):
    """One parent, one child for each trial with a result, every value as the database has it."""
    children = {r["tags"]["sweep.trial"]: r for r in state.values() if "mlflow.parentRunId" in r["tags"]}
    parents = {id: r for id, r in state.items() if "mlflow.parentRunId" not in r["tags"]}
    assert len(parents) == 1 and len(state) == len(b.expected) + 1, f"{len(parents)} parents, {len(state)} runs"
    (parent_id, parent), = parents.items()
    assert (parent["name"], parent["status"]) == (finished_sweep.NAME, "FINISHED"), parent
    assert parent["tags"]["mlflow.note.content"] == "Does <b>every</b> value arrive?"
    assert parent["files"].keys() == {"grid.yaml", "results.csv"}, parent["files"]
    assert children.keys() == b.expected.keys()
    for trial, wanted in b.expected.items():
        run = children[trial]
        assert run["tags"]["mlflow.parentRunId"] == parent_id
        assert run["tags"]["sweep.outcome"] == wanted["outcome"] and run["tags"].get("sweep.reason", "") == wanted["reason"]
        assert run["status"] == ("FINISHED" if wanted["outcome"] == "ok" else "FAILED") and run["ended"], run["status"]
        assert_same(run["params"], {k: as_text(v) for k, v in wanted["params"].items()})
        by_step = {k: [(0, v)] for k, v in wanted["metrics"].items()}
        for step, line in enumerate(wanted["history"]):
            for key, value in line.items():
                by_step.setdefault(key, []).append((step, value))
        assert_same({k: [(s, v) for s, v, _ in points] for k, points in run["metrics"].items()}, by_step)
        assert run["files"].keys() == {"result.json"}, run["files"]


def every_value_is_read_back_and_again_changes_nothing(b):
    db, experiment = b.fresh()
    said = b.export(db, experiment)
    assert "3 of 3" in said, said
    state = b.state(experiment)
    assert_complete(b, state)
    assert "3 unchanged" in b.export(db, experiment)
    b.export(db, experiment, "--again")
    pathlib.Path(f"{db}.exports.jsonl").unlink()  # the journal is lost: the server is looked at
    b.export(db, experiment)
    assert_same(b.state(experiment), state)
    trial, value = finished_sweep.correct(db)
    id = next(id for id, r in state.items() if r["tags"].get("sweep.trial") == trial)
    with contextlib.closing(sqlite3.connect(b.folder / "ml.db", timeout=60)) as server:  # as if the axis were newer than this export
        server.execute("delete from params where run_uuid = ? and key = 'zero'", (id,))
        server.commit()
    assert "1 updated, 2 unchanged" in b.export(db, experiment)
    assert_same(b.state(experiment)[id]["params"], state[id]["params"])
    points = {p.step: p.value for p in b.client.get_metric_history(id, "tokens_per_s")}
    assert points == {0: b.expected[trial]["metrics"]["tokens_per_s"], 1: value}, points
    assert len(b.client.get_metric_history(id, "steps/loss")) == len(b.expected[trial]["history"])
    pathlib.Path(f"{db}.exports.jsonl").unlink()
    finished_sweep.correct(db, 0.25)  # of one step MLflow would go on showing the larger value
    b.export(db, experiment)
    assert b.client.get_run(id).data.metrics["tokens_per_s"] == 0.25
    assert len(b.client.get_metric_history(id, "steps/loss")) == len(b.expected[trial]["history"])


def faults_and_lost_answers_leave_each_run_once(b):
    db, experiment = b.fresh()
    gate = Gate(b.port)
    try:
        gate.faults = {(CREATE, 1): "cut after", (CREATE, 2): "429", (CREATE, 4): "cut after", (LOG, 1): "500",
                       (LOG, 2): "cut after", (LOG, 4): "no answer"}
        said = b.export(db, experiment, "--timeout", "8", uri=gate.base, MLFLOW_TRACKING_TOKEN="tok-en")
        assert not gate.faults, f"not met: {gate.faults}"
        assert "trying again" in said and "tok-en" not in said, said
        assert set(gate.headers) == {"Bearer tok-en"}, set(gate.headers)
    finally:
        gate.close()
    assert_complete(b, b.state(experiment))


def killed_in_the_middle_it_goes_on(b):
    db, experiment = b.fresh()
    gate = Gate(b.port)
    try:
        gate.faults = {(LOG, 5): "no answer"}  # in the middle of the second trial: three requests each
        running = subprocess.Popen(b.words(db, experiment, gate.base, []), stderr=subprocess.DEVNULL, env=b.environment(), cwd=b.folder)
        processes.wait_for(lambda: not gate.faults, 120, "the second trial is on its way")
        running.kill()
        running.wait()
    finally:
        gate.close()
    found = b.client.get_experiment_by_name(experiment)
    states = sorted(r.info.status for r in b.client.search_runs([found.experiment_id]))
    assert len(states) == 3 and states.count("RUNNING") == 2, f"the parent and the second trial are under way: {states}"
    b.export(db, experiment, MLFLOW_TRACKING_USERNAME="me", MLFLOW_TRACKING_PASSWORD="run")  # a word of the answers, too
    assert_complete(b, b.state(experiment))


def what_is_wrong_is_said(b):
    db, experiment = b.fresh()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and never listening: refused at once
        said = b.export(db, experiment, uri=f"http://127.0.0.1:{closed.getsockname()[1]}", code=1)
    assert "given up after 4 tries" in said and "run it again to send what is missing" in said, said
    id = b.client.create_experiment(experiment)
    b.client.delete_experiment(id)
    assert "deleted there" in b.export(db, experiment, code=1)


def main():
    if importlib.util.find_spec("mlflow") is None:
        print("the Python package mlflow is not here (scripts/setup test installs it)")
        sys.exit(77)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    bin_dir = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="sweep-mlflow-") as name:
        folder = pathlib.Path(name)
        server = Server(folder)
        try:
            bench = Bench(bin_dir, folder, server.port)
            processes.wait_for(server.healthy, START_SECONDS, "the MLflow server is up")
            for case in (every_value_is_read_back_and_again_changes_nothing, faults_and_lost_answers_leave_each_run_once,
                         killed_in_the_middle_it_goes_on, what_is_wrong_is_said):
                case(bench)
                print(f"{case.__name__}: as it should be", flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
