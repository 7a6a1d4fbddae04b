#!/usr/bin/env python3
"""kubernetes_test.py BIN_DIR: the manifests of examples/kubernetes, their commands run in pods that this machine plays (tests/e2e/cluster/pods.py):
a sweep in one pod that is evicted and killed in between, and one over the pods of a Job by ssh. Root only."""
import importlib.util
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

from cluster import daemons, sshd

SKIP = 77
if importlib.util.find_spec("yaml") is None or os.geteuid() != 0 or sshd.missing():
    print("SKIPPED: needs root, PyYAML and sshd")
    sys.exit(SKIP)
from cluster import pods  # noqa: E402  (it needs PyYAML)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "kubernetes"


class KubernetesTest(unittest.TestCase):
    def job(self, manifest):
        temporary = tempfile.TemporaryDirectory(prefix="sweep-pods-")
        self.addCleanup(temporary.cleanup)
        job = pods.Job(pathlib.Path(temporary.name) / "job", EXAMPLES / manifest, BIN)
        self.enterContext(job)
        self.results = job.folder / "claim" / "sweep-results" / "sweep.db"
        return job

    def rows(self, sql):
        with sqlite3.connect(f"file:{self.results}?mode=ro", uri=True) as database:
            return database.execute(sql).fetchall()

    def ends(self, job, pod, code):
        self.assertEqual(pod.wait(300), code, job.log(pod))

    def measured(self, job, pod, least):
        """Waits until so many trials have a result."""
        def enough():
            self.assertIsNone(pod.poll(), job.log(pod))
            # A reader that is root makes -shm where it is absent, and for an instant it is not the owner's of the database.
            made = all(pathlib.Path(f"{self.results}{tail}").exists() for tail in ("", "-wal", "-shm"))
            try:
                return made and self.rows("select count(*) from results where outcome = 'ok'")[0][0] >= least
            except sqlite3.OperationalError:
                return False  # its tables are being made
        daemons.wait_for(enough, 120, f"{least} results")

    def test_one_pod_which_is_evicted_and_killed(self):
        job = self.job("one-pod.yaml")
        grid = job.config["sweep-grid"]
        grid["grid.yaml"] = grid["grid.yaml"].replace(", steps: 10", ", steps: 3000")  # time to be struck in
        pod = job.start()
        self.measured(job, pod, 1)
        job.terminate(pod)
        self.ends(job, pod, 130)  # no exit code that fails the Job: the next pod goes on
        pod = job.start()
        self.measured(job, pod, 2)
        os.kill(job.first_process(pod), signal.SIGKILL)
        pod.wait()
        pod = job.start()
        self.ends(job, pod, 0)
        self.assertEqual(self.rows("select outcome, count(*) from results group by outcome"), [("ok", 3)])

    def test_pods_of_one_job_by_ssh(self):
        job = self.job("ssh-pods.yaml")
        keys = job.secret("sweep-keys")
        for name in ("id", "host"):
            subprocess.run([sshd.program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", keys / name], check=True)
        (keys / "authorized_keys").write_text((keys / "id.pub").read_text())
        (keys / "known_hosts").write_text("* " + (keys / "host.pub").read_text())
        other = job.start(1)
        first = job.start(0)
        self.ends(job, first, 0)
        self.assertIsNone(other.poll(), job.log(other))
        self.assertEqual(self.rows("select nodes, outcome, count(*) from results group by nodes, outcome"), [(1, "ok", 3), (2, "ok", 3)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
