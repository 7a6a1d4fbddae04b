#!/usr/bin/env python3
"""secrets_test.py BIN FAKE_RANK: whole sweeps over two nodes, by Slurm and over ssh, with ranks that end in every way. The
token of their agents, the private key of ssh and a tracker's key in the user's environment are then searched for: in every
command line and environment that was seen meanwhile, and in every file that anybody wrote."""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import database
import sweep_folder
from cluster import agents, daemons, proc, slurm, sshd

BIN, FAKE_RANK = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
TRACKER_KEY = "5ec2e7" * 6 + "beef"
GRID = """name: {name}
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, gpus_per_node: 1, nodes: 2}}
grid: {{seq_len: {{range: [64, 73, 1]}}}}
derive: {{fake: "seq_len - 64", fake_step_ms: "1"}}
measure: {{warmup_steps: 1, steps: 2}}
limits: {{trial_seconds: 8}}
launch: {launch}
"""
ENDS = {"ok", "oom", "crash", "unsupported", "timeout"}  # outcomes of the ten scripts in fake_trial.cpp
# Stands before a program: keeps the line that comes on standard input, and passes it on.
LISTENER = """#!/bin/bash
if [[ " $* " == *" --join "* ]]; then
  IFS= read -r line
  printf '%s\\n' "$line" >>{kept}
  exec {program} "$@" <<<"$line"
fi
exec {program} "$@"
"""


class Observer(threading.Thread):
    """Command lines and environments of every process that carries one of the marks, over and over."""

    def __init__(self, folder):
        super().__init__()
        self.mark, self.seen, self.stopped = f"{agents.MARK}={folder}".encode(), set(), threading.Event()

    def run(self):
        while not self.stopped.wait(0.1):
            for pid in proc.pids():
                environment = proc.content(pid, "environ")
                if self.mark in environment:
                    self.seen.add((proc.content(pid, "cmdline"), environment))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()


class SecretsTest(sweep_folder.SweepFolder):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o711)
        aside = tempfile.TemporaryDirectory(prefix="sweep-kept-")  # keeps the token for the search
        self.addCleanup(aside.cleanup)
        self.kept = pathlib.Path(aside.name) / "said"
        self.environment = {**os.environ, agents.MARK: str(self.folder), "SWEEP_SITE": str(self.folder / "no-site.yaml"),
                            "WANDB_API_KEY": TRACKER_KEY}

    def listener(self, path, program):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LISTENER.format(kept=self.kept, program=program))
        path.chmod(0o755)
        return path

    def sweep(self, name, launch, environment):
        """Runs it under observation; what it said is a file like any other."""
        grid, db = self.folder / f"{name}.yaml", self.folder / f"{name}.db"
        grid.write_text(GRID.format(name=name, launch=launch))
        with Observer(self.folder) as observer, open(self.folder / "said", "wb") as said:
            subprocess.run([BIN / "sweep", "run", grid, "--db", db, "--rank", FAKE_RANK], env=environment, stdin=subprocess.DEVNULL,
                           stdout=said, stderr=said, timeout=200, check=False)
        told = (self.folder / "said").read_text()
        outcomes = {outcome for (outcome,) in database.rows(db, "select outcome from results")}
        self.assertEqual(outcomes, ENDS, told)
        with open(self.folder / "answers", "wb") as answers:  # messages that people see about failures
            for words in (["status"], ["report", "--out", self.folder / "report.html"], ["query", "select * from results"],
                          *(["explain", trial] for (trial,) in database.rows(db, "select trial from results"))):
                subprocess.run([BIN / "sweep", *words, "--db", db], env=environment, stdout=answers, stderr=answers, check=False)
        return observer.seen

    def token(self):
        tokens = {line.split('"token":"')[1].split('"')[0] for line in self.kept.read_text().splitlines()}
        self.assertTrue(tokens and all(len(token) == 64 for token in tokens), tokens)
        return tokens

    def nowhere(self, secrets, seen, but=()):
        """No process shows one of them, no file holds one."""
        self.assertTrue(any(b"sweep-agent" in words and b"--join" in words for words, _ in seen), "the processes were never looked at")
        for secret in secrets:
            for words, environment in seen:
                self.assertNotIn(secret.encode(), words)
                self.assertNotIn(secret.encode(), environment)
        self.not_in_files(secrets, but)

    def not_in_files(self, secrets, but=()):
        searched = 0
        for path in self.folder.rglob("*"):
            if not path.is_file() or path.is_symlink() or any(path.is_relative_to(other) for other in but):
                continue
            content, searched = path.read_bytes(), searched + 1
            for secret in secrets:
                self.assertNotIn(secret.encode(), content, path)
        self.assertGreater(searched, 30)

    def test_slurm(self):
        if slurm.missing():
            self.skipTest(f"this machine lacks {', '.join(slurm.missing())}")
        own = self.listener(self.folder / "bin" / "srun", slurm.program("srun")).parent
        with slurm.Cluster(self.folder / "slurm", nodes=2) as cluster:
            environment = {**cluster.environment, **self.environment}
            seen = self.sweep("slurm", f"{{slurm: {{partition: main, max_nodes: 2, max_allocations: 1, poll_seconds: 1, "
                                       f"prologue: ['export PATH={own}:$PATH']}}}}", environment)
            self.nowhere(self.token(), seen)
            self.not_in_files([TRACKER_KEY], [cluster.folder / "state", cluster.folder / "run"])  # Slurm keeps environments of jobs
            daemons.kill_marked(self.folder)

    def test_ssh(self):
        if sshd.missing():
            self.skipTest(f"this machine lacks {', '.join(sshd.missing())}")
        agent = self.listener(self.folder / "bin" / "agent", BIN / "sweep-agent")
        with sshd.Cluster(self.folder / "sshd", hosts=2, environment=self.environment, session={agents.MARK: self.folder}) as cluster:
            seen = self.sweep("ssh", f"{{ssh: {{hosts: [{', '.join(cluster.hosts)}], config: {cluster.config}, "
                                     f"directory: {self.folder}/far, agent: {agent}, rank: {FAKE_RANK}}}}}", self.environment)
            self.nowhere(self.token(), seen)
            keys = [line for name in ("id", "host") for line in (cluster.folder / name).read_text().splitlines()[1:-1]]
            self.nowhere(keys, seen, [cluster.folder / "id", cluster.folder / "host"])
            self.not_in_files([TRACKER_KEY])
            hosts = {daemon.pid for daemon in cluster.daemons.values()}
            agents.wait_for(lambda: not set(agents.marked(self.folder)) - hosts, 40, "nothing left")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
