#!/usr/bin/env python3
"""ssh_test.py BIN_DIR: `sweep run --on ssh` over real sshd instances of this machine with fake ranks: every scripted
outcome, a connection that is cut, an orchestrator that is killed. Nothing may be left, whatever happens."""
import contextlib
import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
import agents  # noqa: E402  (found by the line above)
import sshd  # noqa: E402

BIN = pathlib.Path(sys.argv[1])
SKIP = 77
SCRIPTS = {"ok": {}, "oom": {"outcome": "oom", "rank": 0}, "crash": {"outcome": "crash_signal", "rank": 0},
           "stubborn": {"outcome": "hang_ignore_sigterm"}, "hang": {"outcome": "hang"},
           "double_fork": {"outcome": "double_fork"}, "huge_log": {"outcome": "huge_log", "bytes": 4 << 20, "phase": "build"}}


def grid(name, cluster, folder, points, **ssh):
    """A grid whose trials carry their script in seq_len's place: rank programs find it by sequence length."""
    rows = [{"seq_len": 64 + i, **point} for i, point in enumerate(points)]
    launch = {"ssh": {"hosts": [{"host": host} for host in cluster.hosts], "config": str(cluster.config),
                      "directory": str(folder / "far"), "lease_seconds": 3, "silence_seconds": 60, **ssh}}
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({"name": name, "model": "tiny-llama", "base": {"hardware": "cpu"}, "include": rows,
                                "measure": {"warmup_steps": 1, "steps": 3}, "launch": launch,
                                "limits": {"retries_crash": 0, "trial_seconds": 30}}))
    return path


class SshTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-ssh-e2e-")
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.folder.chmod(0o711)
        cls.environment = {**os.environ, agents.MARK: str(cls.folder)}
        cls.cluster = sshd.Cluster(cls.folder / "sshd", hosts=2, environment=cls.environment).start()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        cls.temporary.cleanup()

    def tearDown(self):
        own = {daemon.pid for daemon in self.cluster.daemons.values()}

        def left():
            return {pid: words for pid, words in agents.marked(self.folder).items() if pid not in own}
        try:
            agents.wait_for(lambda: not left(), 40, "no process left")  # a shared connection lingers after a kill
        except TimeoutError:
            self.fail(f"left behind: {left()}")
        self.assertEqual(list((self.folder / "far" / "spool").iterdir()), [], "spools left on the hosts")

    def sweep(self, *words, **options):
        command = [str(word) for word in (BIN / "sweep", *words)]
        return subprocess.Popen(command, env={**self.environment, "FAKE_SCRIPTS": "1"}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

    def run_grid(self, path):
        return self.sweep("run", path, "--db", self.db(path), "--rank", BIN / "fake_rank", "--on", "ssh")

    def db(self, path):
        return self.folder / f"{path.stem}.db"

    def outcomes(self, path):
        said = subprocess.run([BIN / "sweep", "query", "--db", self.db(path), "--json",
                               "select seq_len, outcome, attempts from results order by seq_len"],
                              capture_output=True, text=True, check=True).stdout
        return {row["seq_len"]: row for row in json.loads(said)}

    def finish(self, process, code, seconds=120):
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            self.fail(f"it does not end:\n{said}")
        self.assertEqual(process.returncode, code, said)
        return said

    def test_outcomes(self):
        two = {"nodes": 2, "gpus_per_node": 2}
        points = [{}, two, {"micro_batch_size": 2}]
        path = grid("outcomes", self.cluster, self.folder, points)
        self.finish(self.run_grid(path), 0)
        self.assertEqual([row["outcome"] for row in self.outcomes(path).values()], ["ok"] * 3)
        logs = list((self.folder / "outcomes.db.spool").rglob("rank_*.log"))
        self.assertEqual(len(logs), 6, logs)  # brought here when the folders there were removed

    def test_connection_cut(self):
        path = grid("cut", self.cluster, self.folder, [{} for _ in range(12)])
        run = self.run_grid(path)
        agents.wait_for(lambda: self.started(path) >= 1, 60, "the first attempt started")
        for host in self.cluster.hosts:
            self.cluster.cut(host)
        said = self.finish(run, 0)
        rows = self.outcomes(path)
        self.assertEqual([(row["outcome"], row["attempts"]) for row in rows.values()], [("ok", 1)] * 12, said)
        self.assertIn("lost the connection", said)

    def started(self, path):
        return sum(file.read_bytes().count(b'"started"') for file in
                   pathlib.Path(f"{self.db(path)}.spool").glob("*/outbox.jsonl"))

    def test_killed_orchestrator(self):
        path = grid("killed", self.cluster, self.folder, [{} for _ in range(12)])
        run = self.run_grid(path)
        agents.wait_for(lambda: self.started(path) >= 1, 60, "the first attempt started")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        again = self.sweep("resume", "killed", "--db", self.db(path), "--rank", BIN / "fake_rank")
        said = self.finish(again, 0)
        rows = self.outcomes(path)
        self.assertEqual([(row["outcome"], row["attempts"]) for row in rows.values()], [("ok", 1)] * 12, said)

    def test_unknown_host_is_refused(self):
        path = grid("unknown", self.cluster, self.folder, [{}])
        text = path.read_text().replace('"host": "host1"', '"host": "no-such-host.invalid"')
        path.write_text(text)
        said = self.finish(self.run_grid(path), 1)
        self.assertIn("no-such-host.invalid", said)


if __name__ == "__main__":
    if absent := sshd.missing():
        print(f"skipped: this machine lacks {', '.join(absent)}")
        sys.exit(SKIP)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
