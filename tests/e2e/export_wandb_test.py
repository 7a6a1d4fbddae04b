#!/usr/bin/env python3
"""export_wandb_test.py BIN: a finished sweep goes to a recording W&B server online, as files through the genuine `wandb sync`,
and by the genuine SDK; all three must leave the same there, under injected faults, kills and Ctrl-C too, and the genuine
wandb.Api() must read it back. Exit 77: the wandb package is not here."""
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile

import finished_sweep
import processes
import wandb_recorder
from finished_sweep import assert_same

SECRET = wandb_recorder.KEY
SDK = """
import json, sys, wandb
for run in json.load(sys.stdin):
    r = wandb.init(project=run["project"], group=run["groupName"], job_type=run["jobType"], name=run["displayName"],
                   notes=run["notes"], tags=run["tags"], config=run["config"],
                   settings=wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True, silent=True))
    for step, line in enumerate(run["history"]):
        r.log(line, step=step)
    r.summary.update(run["summary"])
    r.finish(exit_code=0 if run["state"] == "finished" else 1)
"""
API = """
import json, sys, wandb
run = wandb.Api().run(sys.argv[1])
print(json.dumps({"state": run.state, "config": dict(run.config), "summary": dict(run.summary), "name": run.name,
                  "group": run.group, "tags": run.tags, "history": list(run.scan_history())}))
"""


class Bench:
    def __init__(self, bin_dir, folder):
        self.bin, self.folder = bin_dir, folder
        self.made = finished_sweep.make(bin_dir, folder)
        self.copies = 0
        self.expected = finished_sweep.expected(self.made)

    def environment(self, recorder, **more):
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WANDB") and not k.lower().endswith("_proxy")}
        return {**kept, "HOME": str(home), "WANDB_BASE_URL": recorder.base, "WANDB_API_KEY": SECRET, "WANDB_DIR": str(home),
                "WANDB_CONFIG_DIR": str(home / "config"), "WANDB_CACHE_DIR": str(home / "cache"), "WANDB_SILENT": "true",
                "WANDB_ERROR_REPORTING": "false", **more}

    def fresh(self):
        """A copy of the database that has never been exported."""
        self.copies += 1
        copy = self.folder / f"copy{self.copies}.db"
        shutil.copy(self.made, copy)
        return copy

    def export(self, recorder, db, *words, code=0, **environment):
        done = subprocess.run([self.bin / "sweep", "export", "wandb", "--db", db, *words], capture_output=True, text=True,
                              timeout=120, env=self.environment(recorder, **environment), cwd=self.folder)
        assert done.returncode == code, f"exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
        assert SECRET not in done.stdout + done.stderr, "the key was printed"
        return done.stderr

    def start(self, recorder, db, *words):
        return subprocess.Popen([self.bin / "sweep", "export", "wandb", "--db", db, *words], stderr=subprocess.PIPE, text=True,
                                env=self.environment(recorder), cwd=self.folder)

    def reference(self):
        """The result of an undisturbed export."""
        with recording() as recorder:
            self.export(recorder, self.fresh())
            return recorder.state()


@contextlib.contextmanager
def recording():
    recorder = wandb_recorder.Recorder()
    try:
        yield recorder
        assert not recorder.rewritten, f"history lines given twice with different values: {recorder.rewritten[:5]}"
    finally:
        recorder.close()


def by_trial(state):
    return {run["config"]["trial"]: run for run in state.values()}


def the_server_holds_what_the_database_holds(b):
    with recording() as recorder:
        db = b.fresh()
        said = b.export(recorder, db)
        assert "3 of 3" in said and "1 pruned" in said, said
        found = by_trial(recorder.state())
        assert found.keys() == b.expected.keys(), found.keys()
        for trial, wanted in b.expected.items():
            run = found[trial]
            assert_same(run["config"], wanted["params"])
            assert_same(run["history"], {i: {"_step": i, **line} for i, line in enumerate(wanted["history"])})
            final = {**wanted["metrics"], **wanted["texts"], "outcome": wanted["outcome"],
                     **({"reason": wanted["reason"]} if wanted["reason"] else {}),
                     "_step": len(wanted["history"]) - 1, **wanted["history"][-1]}
            assert_same(run["summary"], final)
            assert run["state"] == ("finished" if wanted["outcome"] == "ok" else "failed"), run["state"]
        before, asked = recorder.state(), len(recorder.calls)
        assert "3 unchanged" in b.export(recorder, db)
        assert len(recorder.calls) == asked, "an export that changes nothing asks nothing"
        b.export(recorder, db, "--again")
        (b.folder / f"{db.name}.exports.jsonl").unlink()  # the journal is lost: the server knows
        b.export(recorder, db)
        assert_same(recorder.state(), before)
        trial, value = finished_sweep.correct(db)
        said = b.export(recorder, db)
        assert "1 updated, 2 unchanged" in said, said
        next(r for r in before.values() if r["config"]["trial"] == trial)["summary"]["tokens_per_s"] = value
        assert_same(recorder.state(), before)
        for file in (db, b.folder / f"{db.name}.exports.jsonl"):
            assert SECRET.encode() not in file.read_bytes(), f"the key is in {file}"


def the_genuine_sdk_leaves_the_same(b):
    ours = by_trial(b.reference())
    chosen = [t for t in ours if b.expected[t]["outcome"] == "oom"] + [t for t in ours if b.expected[t]["outcome"] == "ok"][:1]
    runs = []
    for trial in chosen:
        run, wanted = ours[trial], b.expected[trial]
        runs.append({**run, "config": wanted["params"], "history": wanted["history"],
                     "summary": {**wanted["metrics"], **wanted["texts"], "outcome": wanted["outcome"],
                                 **({"reason": wanted["reason"]} if wanted["reason"] else {})}})
    with recording() as recorder:
        done = subprocess.run([sys.executable, "-c", SDK], input=json.dumps(runs), capture_output=True, text=True, timeout=120,
                              env=b.environment(recorder), cwd=b.folder)
        assert done.returncode == 0, done.stderr[-3000:]
        theirs = by_trial(recorder.state())
        assert theirs.keys() == set(chosen), theirs.keys()
        for trial in chosen:
            assert_same(theirs[trial], ours[trial])


def wandb_sync_takes_the_offline_files(b):
    ours = b.reference()
    db, offline = b.fresh(), b.folder / "offline"
    with recording() as recorder:
        b.export(recorder, db, "--offline", offline)
        assert not recorder.calls, "--offline spoke to the server"
        runs = sorted(offline.iterdir())
        bytes_before = {r: next(r.glob("*.wandb")).read_bytes() for r in runs}
        assert "3 unchanged" in b.export(recorder, db, "--offline", offline)
        assert {r: next(r.glob("*.wandb")).read_bytes() for r in runs} == bytes_before
        done = subprocess.run([sys.executable, "-m", "wandb", "sync", *runs], capture_output=True, text=True, timeout=120,
                              env=b.environment(recorder), cwd=b.folder)
        assert recorder.runs, f"wandb sync sent nothing:\n{done.stdout}\n{done.stderr}"
        assert_same(recorder.state(), ours)
        assert "3 unchanged" in b.export(recorder, db, "--offline", offline)


def the_genuine_api_reads_it(b):
    with recording() as recorder:
        b.export(recorder, b.fresh())
        name, run = next((n, r) for n, r in recorder.state().items() if r["state"] == "finished")
        done = subprocess.run([sys.executable, "-c", API, f"{wandb_recorder.ENTITY}/sweep/{name}"], capture_output=True, text=True,
                              timeout=120, env=b.environment(recorder), cwd=b.folder)
        assert done.returncode == 0, f"{done.stderr[-3000:]}\nunanswered: {recorder.unknown[:2]}"
        read = json.loads(done.stdout)
        for line in read["history"]:
            line.pop("_timestamp"), line.pop("_runtime")
        assert_same(read["history"], [wandb_recorder.worded(line) for line in run["history"].values()])
        assert_same(read["config"], run["config"])
        assert_same({k: v for k, v in read["summary"].items() if k in run["summary"]}, run["summary"])
        assert (read["state"], read["group"], read["name"]) == ("finished", finished_sweep.NAME, run["displayName"]), read


def faults_cost_nothing(b):
    ours = b.reference()
    with recording() as recorder:
        recorder.faults = {("graphql", 1): "409", ("graphql", 3): "cut after", ("graphql", 5): "500",
                           ("file_stream", 1): "429", ("file_stream", 3): "no answer", ("file_stream", 5): "cut after",
                           ("file_stream", 6): "429 date", ("file_stream", 7): "cut"}
        said = b.export(recorder, b.fresh(), "--timeout", "4")
        assert not recorder.faults, f"not met: {recorder.faults}"
        assert "trying again in" in said, said
        assert_same(recorder.state(), ours)


def killed_or_interrupted_in_the_middle_it_goes_on(b):
    ours = b.reference()
    for end, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        with recording() as recorder:
            db = b.fresh()
            recorder.faults = {("file_stream", 2): "no answer"}
            running = b.start(recorder, db)
            processes.wait_for(lambda: not recorder.faults, 60, "the second trial is on its way")
            running.send_signal(end)
            said = running.communicate(timeout=60)[1]
            assert running.returncode == code, f"exit {running.returncode}: {said}"
            if end == signal.SIGINT:
                assert "run it again to send what is missing" in said, said
            assert "1 unchanged" in b.export(recorder, db)
            assert_same(recorder.state(), ours)


def a_refused_run_does_not_stop_the_others(b):
    with recording() as recorder:
        db = b.fresh()
        recorder.faults = {("file_stream", 1): "400"}
        said = b.export(recorder, db, code=1)
        assert "injected 400" in said and "2 of 3" in said, said
        said = b.export(recorder, db)
        assert "2 unchanged" in said and "3 of 3" in said, said
    with recording() as recorder:
        b.export(recorder, db)
        run = next(iter(recorder.runs.values()))
        run["history"][len(run["history"])] = {"_step": 999}
        said = b.export(recorder, db, "--again", code=1)
        assert "someone else logs to it" in said and "2 of 3" in said, said


def keys_are_kept_and_bad_ones_refused(b):
    with recording() as recorder:
        db, key_file = b.fresh(), b.folder / "keys"
        wrong = "f" * 40
        said = b.export(recorder, db, code=1, WANDB_API_KEY=wrong)
        assert "401" in said and "***" in said and wrong not in said, said
        assert "cut off" in b.export(recorder, db, code=2, WANDB_API_KEY="short")
        assert "WANDB_API_KEY" in b.export(recorder, db, code=2, WANDB_API_KEY="")
        key_file.write_text(f"machine 127.0.0.1 login user password {SECRET}\n")
        key_file.chmod(0o644)
        said = b.export(recorder, db, "--key-file", key_file, code=2, WANDB_API_KEY="")
        assert f"chmod 600 {key_file}" in said, said
        assert not recorder.runs
        key_file.chmod(0o600)
        b.export(recorder, db, "--key-file", key_file, WANDB_API_KEY="")
        assert len(recorder.runs) == 3
        said = b.export(recorder, db, "--uri", f"http://me:{SECRET}@127.0.0.1", code=2)
        assert "keys come from" in said, said
        assert "--experiment" in b.export(recorder, db, "--experiment", "x", code=2)


def a_proxy_is_used(b):
    with recording() as recorder:
        b.export(recorder, b.fresh(), "--uri", "http://wandb.invalid", http_proxy=recorder.base)
        assert len(recorder.runs) == 3
        assert all(path.startswith("http://wandb.invalid/") for _, path, _ in recorder.calls), recorder.calls[0][1]


def certificates_are_checked(b):
    cert, key = b.folder / "cert.pem", b.folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    with recording() as recorder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        recorder.server.socket = context.wrap_socket(recorder.server.socket, server_side=True)
        uri, db = recorder.base.replace("http://", "https://"), b.fresh()
        said = b.export(recorder, db, "--uri", uri, code=1)
        assert "--ca" in said and "trying again" not in said, said
        assert not recorder.calls
        b.export(recorder, db, "--uri", uri, "--ca", cert)
        assert len(recorder.runs) == 3


CASES = [the_server_holds_what_the_database_holds, the_genuine_sdk_leaves_the_same, wandb_sync_takes_the_offline_files,
         the_genuine_api_reads_it, faults_cost_nothing, killed_or_interrupted_in_the_middle_it_goes_on,
         a_refused_run_does_not_stop_the_others, keys_are_kept_and_bad_ones_refused, a_proxy_is_used, certificates_are_checked]


def main():
    if importlib.util.find_spec("wandb") is None:
        print("the Python package wandb is not here (scripts/setup test installs it)")
        sys.exit(77)
    bin_dir = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="sweep-wandb-") as name:
        bench = Bench(bin_dir, pathlib.Path(name))
        for case in CASES:
            if len(sys.argv) < 3 or case.__name__ in sys.argv[2:]:
                case(bench)
                print(f"{case.__name__}: as it should be", flush=True)


if __name__ == "__main__":
    main()
