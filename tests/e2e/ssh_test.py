#!/usr/bin/env python3
"""ssh_test.py BIN_DIR [--ordinary-user]: `sweep run --on ssh` over real sshd instances of this machine with fake ranks: every scripted
outcome, a connection that is cut, an orchestrator that is killed. Nothing may be left, whatever happens."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import database
import schemas
from cluster import agents, ordinary_user, sshd

BIN = pathlib.Path(sys.argv[1]).resolve()
SKIP = 77
EXPECTED = ["ok", "oom", "crash", "crash", "unsupported", "timeout", "ok", "ok", "ok", "crash"]  # index: number of the script in fake_trial.cpp

GRID = """name: {name}
model: {{family: llama, layers: 2, hidden_size: 64, heads: 4, kv_heads: 4, intermediate_size: 172, vocab_size: 256, tie_embeddings: false}}
base: {{hardware: cpu, gpus_per_node: {ranks}}}
grid: {{seq_len: {{range: [64, {last}, 1]}}, nodes: {nodes}}}
derive: {{fake: "{fake}", fake_step_ms: "{step_ms}"}}
measure: {{warmup_steps: 1, steps: 2}}
limits: {{trial_seconds: 8}}
launch:
  ssh:
    hosts: [{hosts}]
    config: {config}
    directory: {directory}
    lease_seconds: 3
    silence_seconds: 60
"""


class SshTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sweep-ssh-e2e-")
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.folder.chmod(0o711)
        cls.environment = {**os.environ, agents.MARK: str(cls.folder)}
        cls.cluster = sshd.Cluster(cls.folder / "sshd", hosts=2, environment=cls.environment,
                                   session={agents.MARK: cls.folder}).start()

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
        spools = self.folder / "far" / "spool"
        self.assertEqual(list(spools.iterdir()) if spools.exists() else [], [], "spools left on the hosts")

    def sweep(self, *words, **options):
        command = [str(word) for word in (BIN / "sweep", *words)]
        return subprocess.Popen(command, env={**self.environment, "SWEEP_SITE": str(self.folder / "no-site.yaml")}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

    def grid(self, name, trials, fake="0", step_ms=1, nodes=(1,), hosts=None, config=None, more="", ranks=1):
        path = self.folder / f"{name}.yaml"
        hosts = hosts or [f"{{host: {host}, slots: 1}}" for host in self.cluster.hosts]
        path.write_text(GRID.format(name=name, last=63 + trials, fake=fake, step_ms=step_ms, nodes=list(nodes), ranks=ranks,
                                    hosts=", ".join(hosts), config=config or self.cluster.config, directory=self.folder / "far") + more)
        return path

    def run_grid(self, path):
        return self.sweep("run", path, "--db", self.db(path), "--rank", BIN / "fake_rank")

    def db(self, path):
        return self.folder / f"{path.stem}.db"

    def outcomes(self, path):
        """(sequence length, nodes) -> (outcome, attempts)"""
        said = subprocess.run([BIN / "sweep", "query", "--db", self.db(path), "--json",
                               "select seq_len, nodes, outcome, attempts from results order by 1, 2"],
                              capture_output=True, text=True, check=True).stdout
        return {(row["seq_len"], row["nodes"]): (row["outcome"], row["attempts"]) for row in json.loads(said)}

    def started(self, path):
        spools = pathlib.Path(f"{self.db(path)}.spool")
        return sum(file.read_bytes().count(b'"kind":"started"') for file in spools.glob("*/outbox.jsonl"))

    def asked(self, path):
        """The hosts of every allocation, in the order in which they were asked for."""
        records = sorted(pathlib.Path(f"{self.db(path)}.spool").glob("*/allocation.json"))
        return [[host["host"] for host in json.loads(record.read_text())["hosts"]] for record in records]

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
        path = self.grid("outcomes", len(EXPECTED), fake="seq_len - 64", nodes=(1, 2))
        said = self.finish(self.run_grid(path), 1)
        found = {key: outcome for key, (outcome, _) in self.outcomes(path).items()}
        self.assertEqual(found, {(64 + i, nodes): outcome for i, outcome in enumerate(EXPECTED) for nodes in (1, 2)}, said)
        logs = list(pathlib.Path(f"{self.db(path)}.spool").rglob("rank_00001.log"))
        self.assertTrue(logs, "the ranks' logs were brought here when the folders there were removed")

    def test_two_kinds_of_node(self):
        """One trial over a host with an A100 and one with an H100, whose drivers are played: the slower kind is named."""
        names = ["NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"]
        libraries = self.folder / "nvml"
        libraries.mkdir()
        (libraries / "libnvidia-ml.so.1").symlink_to(BIN / "libfake_nvml.so")
        own = {i: {"LD_LIBRARY_PATH": libraries, "FAKE_NVML": f"GPU-{i}:50", "FAKE_NVML_NAME": name} for i, name in enumerate(names)}
        with sshd.Cluster(self.folder / "kinds", hosts=2, environment=self.environment, session={agents.MARK: self.folder}, own=own) as two:
            one, other = two.hosts  # named in the other order than the kinds
            hosts = [f"{{host: {other}, hardware: h100-sxm-80gb}}", f"{{host: {one}, hardware: a100-80gb}}"]
            path = self.grid("kinds", 2, nodes=[2], hosts=hosts, config=two.config)
            path.write_text(path.read_text().replace("hardware: cpu", "hardware: a100-80gb+h100-sxm-80gb, backend: gloo")
                            .replace("derive: {", "derive: {fake_rank: 0, fake_waits_percent: 90, "))
            self.finish(self.run_grid(path), 0)
        self.assertEqual([outcome for outcome, _ in self.outcomes(path).values()], ["ok", "ok"])
        self.assertEqual(self.asked(path)[0], [one, other])
        trial = database.rows(self.db(path), "SELECT trial FROM results")[0][0]
        explained = json.loads(self.finish(self.sweep("explain", trial, "--db", self.db(path), "--json"), 0))
        if schemas.can_be_checked():
            schemas.check("explain", explained)
        self.assertEqual([(node["node"], node["device"]) for node in explained["nodes"]], [(i, f"1 x {name}") for i, name in enumerate(names)])
        self.assertEqual([node["waited_ms"] > 0 for node in explained["nodes"]], [False, True])
        slower = explained["slower_kind"]
        self.assertLess(slower.index(names[0]), slower.index(names[1]), slower)
        for words in (["explain", trial, "-o", self.folder / "trial.html"], ["report", "-o", self.folder / "report.html"]):
            self.finish(self.sweep(*words, "--db", self.db(path)), 0)
            self.assertIn(slower, pathlib.Path(words[-1]).read_text())

    def test_connection_cut(self):
        path = self.grid("cut", 12, step_ms=200)
        run = self.run_grid(path)
        agents.wait_for(lambda: self.started(path) >= 1, 60, "the first attempt started")
        self.assertGreater(sum(self.cluster.cut(host) for host in self.cluster.hosts), 0)
        said = self.finish(run, 0)
        self.assertEqual(list(self.outcomes(path).values()), [("ok", 1)] * 12, said)
        self.assertIn("lost the connection", said)

    def test_two_sweeps(self):
        """They share a connection to the host, and the one that ends first leaves it to the other."""
        host = [f"{{host: {self.cluster.hosts[0]}, slots: 1}}"]
        long, short = self.grid("long", 12, step_ms=500, hosts=host), self.grid("short", 1, hosts=host)
        run = self.run_grid(long)
        agents.wait_for(lambda: self.started(long) >= 1, 60, "the first attempt started")
        self.finish(self.run_grid(short), 0)
        self.assertIsNone(run.poll(), "it goes on")
        said = self.finish(run, 0)
        self.assertEqual(list(self.outcomes(long).values()), [("ok", 1)] * 12, said)
        self.assertNotIn("lost the connection", said)

    def test_killed_orchestrator(self):
        path = self.grid("killed", 12, step_ms=200, nodes=(2,), ranks=2)
        run = self.run_grid(path)
        agents.wait_for(lambda: self.started(path) >= 1, 60, "the first attempt started")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        again = self.sweep("resume", "killed", "--db", self.db(path), "--rank", BIN / "fake_rank")
        said = self.finish(again, 0)
        self.assertEqual(list(self.outcomes(path).values()), [("ok", 1)] * 12, said)
        self.assertIn("taken over", said)
        self.assertEqual(len(self.asked(path)), 1, said)

    def test_clean(self):
        """Processes that a killed run left on the hosts are shown, then ended; results that no one had fetched are not lost by it."""
        path = self.grid("clean", 12, step_ms=200, nodes=(2,), ranks=2)
        run = self.run_grid(path)
        agents.wait_for(lambda: self.started(path) >= 2, 60, "the second attempt started")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        spool = next(pathlib.Path(f"{self.db(path)}.spool").iterdir())
        far = json.loads((spool / "allocation.json").read_text())["hosts"][0]["spool"]
        agents.wait_for(lambda: b'"kind":"attempt_end"' in (pathlib.Path(far) / "outbox.jsonl").read_bytes()[
            (spool / "outbox.jsonl").stat().st_size:], 60, "an attempt ended that this host has no record of")
        self.assertIn("may still run", self.finish(self.sweep("ingest", "--db", self.db(path)), 0))
        elsewhere = self.sweep("resume", "--on", "local", "--db", self.db(path), "--rank", BIN / "fake_rank")
        self.assertIn("`sweep clean` shows it", self.finish(elsewhere, 2))
        shown = self.finish(self.sweep("clean", "--db", self.db(path)), 0)
        for host in self.cluster.hosts:
            self.assertRegex(shown, rf"{host}: process \d+ .*of allocation {spool.name}")
            self.assertIn(f"{host}: folder ", shown)
        self.assertTrue(pathlib.Path(far).exists(), "shown, not ended")
        said = self.finish(self.sweep("clean", "--yes", "--db", self.db(path)), 0)
        self.assertIn("ended", said)
        self.assertFalse(pathlib.Path(far).exists())
        self.assertIn("nothing is left", self.finish(self.sweep("clean", "--db", self.db(path)), 0))
        self.assertGreaterEqual((spool / "outbox.jsonl").read_bytes().count(b'"kind":"attempt_end"'), 2)
        said = self.finish(self.sweep("resume", "clean", "--db", self.db(path), "--rank", BIN / "fake_rank"), 0)
        self.assertEqual({outcome for outcome, _ in self.outcomes(path).values()}, {"ok"}, said)
        path.write_text("")  # clean does not use it: hosts and settings are the sweep's own
        self.cluster.stop_host(self.cluster.hosts[1])
        try:
            said = self.finish(self.sweep("clean", "--db", self.db(path)), 1)
            self.assertIn(f"{self.cluster.hosts[1]}: ssh: connect to host", said)
            self.assertNotIn("nothing is left", said)
        finally:
            self.cluster.start_host(self.cluster.hosts[1])

    def test_noisy_shell(self):
        """Start files that print, a home folder in paths, and short trials that use every host there is."""
        home = self.folder / "noisy-home"
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "fake_rank").symlink_to(BIN / "fake_rank")
        (home / ".bashrc").write_text("printf 'welcome to this host'\necho and its rules >&2\n")
        with sshd.Cluster(self.folder / "noisy", hosts=2, environment=self.environment,
                          session={agents.MARK: self.folder, "HOME": home}) as two:
            path = self.grid("noisy", 24, step_ms=20, config=two.config,
                             hosts=[f"{{host: {host}, rank: ~/bin/fake_rank}}" for host in two.hosts])
            said = self.finish(self.run_grid(path), 0)
        self.assertEqual([outcome for outcome, _ in self.outcomes(path).values()], ["ok"] * 24, said)
        self.assertEqual(sorted(self.asked(path)[0]), two.hosts, said)
        self.assertTrue(list(pathlib.Path(f"{self.db(path)}.spool").rglob("rank_00000.log")), "the logs came through, too")

    def test_dead_host(self):
        """One of three hosts is down: asked for twice, then left alone; what fits the other two is run, what does not says why."""
        with sshd.Cluster(self.folder / "three", hosts=3, environment=self.environment, session={agents.MARK: self.folder}) as three:
            dead = three.hosts[1]
            three.stop_host(dead)
            path = self.grid("dead", 3, nodes=(1, 2, 3), hosts=[f"{{host: {host}, slots: 1}}" for host in three.hosts], config=three.config)
            said = self.finish(self.run_grid(path), 1)
        found = self.outcomes(path)
        self.assertEqual([found[64 + i, nodes] for i in range(3) for nodes in (1, 2)], [("ok", 1)] * 6, said)
        self.assertEqual([found[64 + i, 3][0] for i in range(3)], [None] * 3, said)
        asked = [dead in hosts for hosts in self.asked(path)]
        self.assertEqual((sum(asked), len(asked) > 2), (2, True), f"allocations with {dead}: {asked}\n{said}")
        self.assertIn(f"node {dead} gets no more work for now", said)
        self.assertIn(f"3 that need 3 cpu hosts, of which 2 can be used. In quarantine: {dead}", said)
        status = self.finish(self.sweep("status", "--db", self.db(path)), 0)
        self.assertIn(f"quarantine: node {dead} gets no more work", status)
        trial = json.loads(self.finish(self.sweep("query", "--db", self.db(path), "--json",
                                                  "select id from trial where nodes = 3 limit 1"), 0))[0]["id"]
        explained = self.finish(self.sweep("explain", trial, "--db", self.db(path)), 0)
        self.assertIn(f"node {dead} gets no more work", explained)
        self.assertIn("stay pending: 3 that need 3 cpu hosts", explained)

    def test_slow_host(self):
        """The look at the nodes finds one slow: it is avoided by the name it has in the grid. And NCCL's words are passed on."""
        said_by_nccl = "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"
        with sshd.Cluster(self.folder / "slow", hosts=3, environment=self.environment, own={1: {"SWEEP_FAKE_SLOW": "1 0.2"}},
                          session={agents.MARK: self.folder, "SWEEP_FAKE_NCCL": said_by_nccl}) as three:
            slow = three.hosts[1]
            path = self.grid("slow", 3, nodes=(1, 2), hosts=[f"{{host: {host}, slots: 1}}" for host in three.hosts], config=three.config,
                             more="    screen: leave_out\n")
            said = self.finish(self.run_grid(path), 0)
        self.assertEqual([outcome for outcome, _ in self.outcomes(path).values()], ["ok"] * 6, said)
        first, *later = self.asked(path)
        self.assertIn(slow, first)
        self.assertTrue(later and not any(slow in hosts for hosts in later), later)
        self.assertRegex(said, f"node {slow} gets no more work in this run: matmul 20 GFLOP/s")
        status = self.finish(self.sweep("status", "--db", self.db(path)), 0)
        self.assertIn("NCCL sends between nodes over TCP sockets", status)
        told = json.loads(self.finish(self.sweep("query", "--db", self.db(path), "--json", "select t.id from event e join attempt a on "
                                      "e.text like 'attempt ' || a.id || ': NCCL%' join plan_entry p on p.key = a.entry "
                                      "join trial t on t.key = p.trial limit 1"), 0))
        explained = self.finish(self.sweep("explain", told[0]["id"], "--db", self.db(path)), 0)
        self.assertIn("NCCL sends between nodes over TCP sockets", explained)

    def test_unknown_host(self):
        path = self.grid("unknown", 1, hosts=["no-such-host.invalid"])
        said = self.finish(self.run_grid(path), 1)
        self.assertIn("no-such-host.invalid", said)

    def test_changed_host_key(self):
        """Another host answers where a known one was: refused before anything is said to it, with the place and the way out."""
        known = self.cluster.folder / "known_hosts"
        before = known.read_text()
        other = self.cluster.folder / "other"
        subprocess.run([sshd.program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
        own, stranger = ((self.cluster.folder / name).read_text().split()[1] for name in ("host.pub", "other.pub"))
        known.write_text(before.replace(own, stranger))
        try:
            path = self.grid("changed", 1)
            said = self.finish(self.run_grid(path), 1)
            self.assertIn(f"{known}:1", said)
            self.assertIn("ssh-keygen -R", said)
            known.write_text("")
            path = self.grid("unknown-key", 1)
            said = self.finish(self.run_grid(path), 1)
            self.assertIn(f"host1: its host key is not known: log in once by hand (`ssh -F {self.cluster.config} host1`)", said)
        finally:
            known.write_text(before)
            other.unlink()
        self.assertEqual([outcome for outcome, _ in self.outcomes(path).values()], [None], "it is pending, not failed")


if __name__ == "__main__":
    if absent := sshd.missing():
        print(f"skipped: this machine lacks {', '.join(absent)}")
        sys.exit(SKIP)
    if ordinary_user.asked():
        if not ordinary_user.reaches(BIN):
            print(f"skipped: other users cannot reach {BIN}")
            sys.exit(SKIP)
        sys.exit(ordinary_user.again())
    unittest.main(argv=[word for word in sys.argv[:1] + sys.argv[2:] if word != ordinary_user.WORD], verbosity=2)
