#!/usr/bin/env python3
"""nodes_test.py BIN_DIR: attempts over several node agents of this machine with fake ranks: every outcome, lost nodes,
strangers at the port. Nothing may be left, whatever happens."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from cluster import agents

BIN = pathlib.Path(sys.argv[1])


def frame(head, blob=b""):
    text = json.dumps(head).encode()
    return struct.pack(">II", len(text), len(blob)) + text + blob


def gone(connection):
    """The other side closes it."""
    with contextlib.suppress(ConnectionResetError):  # closed with words of ours unread
        while connection.recv(4096):
            pass
    return True


class NodesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sweep-nodes-")
        self.addCleanup(self.folder.cleanup)

    def agents(self, nodes, **options):
        made = agents.Agents(pathlib.Path(self.folder.name) / "spools", BIN, nodes, **options)
        self.addCleanup(made.stop)
        return made

    def test_outcomes_over_nodes(self):
        it = self.agents(3).start()
        scripts = {1: {}, 2: {"outcome": "oom", "rank": 3}, 3: {"outcome": "crash_signal", "rank": 4, "phase": "build"},
                   4: {"outcome": "hang", "rank": 2}, 5: {"outcome": "double_fork"},
                   6: {"outcome": "huge_log", "bytes": 4 << 20, "phase": "build"}, 7: {"outcome": "hang_ignore_sigterm", "rank": 5}}
        for number, script in scripts.items():
            short = {"step_s": 1.0} if "hang" in script.get("outcome", "") else {}
            it.post("attempt", agents.attempt(number, ranks=6, nodes=3, script=script, deadlines=short))
        ends = {number: it.end_of(number) for number in scripts}
        causes = {number: end["cause"] for number, end in ends.items()}
        self.assertEqual(causes, {1: "done", 2: "rank_failed", 3: "rank_failed", 4: "hang", 5: "done", 6: "done", 7: "hang"},
                         it.tell())
        self.assertTrue(all(end["clean"] for end in ends.values()), ends)
        for number in (1, 5, 6):
            ranks = sorted(line["body"]["rank"] for line in it.lines("rank_record", number))
            self.assertEqual(ranks, list(range(6)))
        crashed = {line["body"]["rank"]: line["body"] for line in it.lines("rank_exit", 3)}
        self.assertEqual(crashed[4].get("signal"), signal.SIGSEGV, crashed)
        started = it.lines("started", 1)
        self.assertEqual((len(started), len(started[0]["body"]["pids"])), (1, 6))
        evidence = ends[4]["evidence"]
        self.assertEqual(sorted(rank["rank"] for rank in evidence["ranks"]), list(range(6)))  # evidence has each rank's position
        self.assertEqual(sorted(line["body"]["node"] for line in it.lines("node")), [0, 1, 2])
        self.assertEqual(it.finish(), [0, 0, 0], it.tell())
        self.assertEqual(it.lines()[-1]["body"]["reason"], "finished")

    def test_smaller_attempts_run_side_by_side(self):
        it = self.agents(3).start()
        it.post("attempt", agents.attempt(1, ranks=2, nodes=2, script={"outcome": "hang"}))
        it.post("attempt", agents.attempt(2, ranks=4, script={}))
        self.assertEqual(it.end_of(2)["cause"], "done")
        self.assertFalse(it.lines("attempt_end", 1))
        it.post("attempt", agents.attempt(3, nodes=5, ranks=5))
        self.assertEqual(it.end_of(3)["cause"], "start_failed")  # it can never fit: said at once
        os.kill(it.lines("started", 1)[0]["body"]["pids"][0], signal.SIGKILL)
        self.assertEqual(it.end_of(1)["cause"], "rank_failed")
        it.finish()

    def test_attempts_side_by_side_keep_to_their_own(self):
        """Attempts of one rank and of two on one node: no GPU and no core is anybody else's meanwhile, and each says who was there."""
        cores = len(os.sched_getaffinity(0))
        it = self.agents(1, options=["--bind"], slots=cores)
        it.environment["CUDA_VISIBLE_DEVICES"] = ",".join(f"GPU-{letter}" for letter in "abcdefghijklmnop"[:cores])
        gate = pathlib.Path(self.folder.name) / "gate"
        gate.mkdir()
        it.environment["SWEEP_FAKE_GATE"] = str(gate)  # ranks stand there until it is open
        it.start()
        for number in (1, 2):
            it.post("attempt", agents.attempt(number))
        for number in range(1, min(cores, 2) + 1):  # with one core they run one after the other
            agents.wait_for(lambda: it.lines("started", number), 120, f"attempt {number} started; {it.tell()}")
        (gate / "open").touch()
        ends = [it.end_of(number) for number in (1, 2)]
        self.assertEqual([end["cause"] for end in ends], ["done", "done"], it.tell())
        places = [line["body"]["effective"] for number in (1, 2) for line in it.lines("rank_record", number)]
        if cores > 1:
            self.assertEqual([end["neighbours"] for end in ends], [1, 1])
            self.assertEqual([place["devices"] for place in places], ["GPU-a", "GPU-b"])
            self.assertFalse(set(places[0]["cores"]) & set(places[1]["cores"]), places)
        it.post("attempt", agents.attempt(3, ranks=cores))  # the whole node: no other attempt fits beside it
        alone = it.end_of(3)
        self.assertEqual((alone["cause"], alone["neighbours"]), ("done", 0))
        ranks = [line["body"]["effective"] for line in it.lines("rank_record", 3)]
        self.assertTrue(all(len(rank["cores"]) == cores and len(rank["devices"].split(",")) == cores for rank in ranks), ranks)
        it.finish()

    def test_a_disk_that_takes_nothing_is_no_crash_of_the_trial(self):
        for options, why in (("size=4k", "No space left"), ("nr_inodes=2", "No space left"), ("ro", "Read-only")):
            with self.subTest(options), tempfile.TemporaryDirectory(prefix="sweep-nodes-") as folder:
                self.no_crash_with(pathlib.Path(folder), options, why)

    def no_crash_with(self, spools, options, why):
        it = agents.Agents(spools, BIN, 2)
        self.addCleanup(it.stop)
        folder = it.spool(1) / "attempts"
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("mounting a small tmpfs is not permitted: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", folder])
        if options != "ro":
            (folder / "all").write_bytes(bytes(4096))
        it.start()
        it.post("attempt", agents.attempt(1, ranks=2, nodes=2))
        it.post("attempt", agents.attempt(2, ranks=2, nodes=2))
        self.assertEqual([it.end_of(number)["cause"] for number in (1, 2)], ["agent_stopping"] * 2, it.tell())
        self.assertIn(why, it.end_of(1)["evidence"]["why"])
        it.expect(lambda line: line["kind"] == "bye", "the agent left by itself")
        it.stop()
        subprocess.run(["umount", "-l", folder], check=True)

    def test_a_rank_program_that_is_gone_is_no_crash_of_the_trial(self):
        program = pathlib.Path(self.folder.name) / "rank"
        shutil.copy2(BIN / "fake_rank", program)
        it = agents.Agents(pathlib.Path(self.folder.name) / "spools", BIN, 1, ["--no-zygote"], rank=program).start()
        self.addCleanup(it.stop)
        program.unlink()
        it.post("attempt", agents.attempt(1, ranks=2))
        end = it.end_of(1)
        self.assertEqual(end["cause"], "agent_stopping", it.tell())
        self.assertIn("No such file", end["evidence"]["why"])
        it.expect(lambda line: line["kind"] == "bye", "the agent left by itself")

    def test_node_that_starts_late(self):
        """A node's zygote stands still: its ranks come by exec once the deadline of starting is over. Who waits for them does not hang."""
        it = self.agents(2).start()
        it.post("attempt", agents.attempt(1, ranks=4, nodes=2))  # the zygotes are there afterwards
        self.assertEqual(it.end_of(1)["cause"], "done")
        zygote = it.zygote(1)
        os.kill(zygote, signal.SIGSTOP)
        it.post("attempt", agents.attempt(2, ranks=4, nodes=2, deadlines={"startup_s": 6.0, "first_step_s": 3.0, "step_s": 3.0}))
        end = it.end_of(2)
        self.assertEqual(end["cause"], "done", f"{end} {it.tell()}")
        it.finish()

    def test_lost_node(self):
        it = self.agents(3, lease=3.0).start()
        it.post("attempt", agents.attempt(1, ranks=3, nodes=3, script={"outcome": "hang"}))
        it.expect(lambda line: line["kind"] == "started", "the first attempt started")
        it.processes[2].kill()
        end = it.end_of(1)
        self.assertEqual(end["cause"], "node_lost", it.tell())
        self.assertIn("node 2", end["evidence"]["why"])
        it.post("attempt", agents.attempt(2, ranks=2, nodes=2))  # the others go on
        self.assertEqual(it.end_of(2)["cause"], "done")
        it.post("attempt", agents.attempt(3, ranks=3, nodes=3))  # this one needs a node that does not come back: given back
        self.assertEqual(it.processes[0].wait(60), 0)
        self.assertEqual(it.lines()[-1]["body"]["reason"], "nodes lost")
        back = it.end_of(3)
        self.assertEqual(back["cause"], "agent_stopping")
        self.assertIn("nodes lost", back["evidence"]["why"])

    def test_silent_node_ends_its_ranks_by_itself(self):
        it = self.agents(2, lease=3.0).start()
        it.post("attempt", agents.attempt(1, ranks=2, nodes=2, script={"outcome": "hang"}))
        it.expect(lambda line: line["kind"] == "started", "the attempt started")
        heads = it.roles()["agent", 0]
        for pid in heads:
            os.kill(pid, signal.SIGSTOP)  # the head goes silent; no connection is closed
        self.assertEqual(it.processes[1].wait(60), 4, it.tell())
        agents.wait_for(lambda: ("agent", 1) not in it.roles(), 60, "nothing of node 1 left")
        for pid in heads:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.assertEqual(it.end_of(1)["cause"], "node_lost")

    def test_a_slow_node_is_found_before_the_first_attempt(self):
        os.environ["SWEEP_FAKE_SLOW"] = "2 0.2"
        self.addCleanup(os.environ.pop, "SWEEP_FAKE_SLOW")
        for word, used in (("show", [0, 1, 2]), ("leave_out", [0, 1])):
            it = agents.Agents(pathlib.Path(self.folder.name) / word, BIN, 3, options=["--screen", word])
            self.addCleanup(it.stop)
            it.start()
            last = {line["body"]["node"]: line["body"]["facts"]["screen"] for line in it.lines("node")
                    if "screen" in line["body"]["facts"]}
            self.assertEqual([node for node in last if "slow" in last[node]], [2], last)
            self.assertIn("matmul 20 GFLOP/s where the median node has 100", last[2]["slow"])
            self.assertEqual(it.lines("hello")[0]["body"]["nodes"], len(used))
            it.post("attempt", agents.attempt(1, ranks=len(used), nodes=len(used)))
            self.assertEqual(it.end_of(1)["cause"], "done", it.tell())
            self.assertFalse([line for line in it.lines() if line["body"].get("attempt", 1) != 1], "the look is no attempt of ours")
            self.assertEqual(it.finish(), [0, 0, 0], it.tell())

    def test_words_of_nccl(self):
        os.environ["SWEEP_FAKE_NCCL"] = "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"
        self.addCleanup(os.environ.pop, "SWEEP_FAKE_NCCL")
        it = self.agents(2).start()
        it.post("attempt", agents.attempt(1, ranks=2, nodes=2))
        it.end_of(1)
        for line in it.lines("rank_record", 1):
            said = line["body"]["effective"]["nccl"]
            self.assertEqual((said["transports"], said["sockets"]), (["NET/Socket"], True))
        it.finish()

    def test_strangers(self):
        it = self.agents(2)
        ready = it.start_head()

        def call(*said, close=True):
            stranger = socket.create_connection((ready["address"], ready["port"]))
            stranger.settimeout(60)
            stranger.recv(4096)  # its challenge
            for words in said:
                stranger.sendall(words)
            if close:
                self.assertEqual(stranger.recv(4096), b"", "a stranger is told nothing")
                stranger.close()
            return stranger

        wrong = frame({"challenge": "0" * 64, "proof": "1" * 64, "node": 1, "version": ready["version"]})
        for _ in range(3):
            call(wrong)
        call(struct.pack(">II", 1 << 30, 1 << 30))
        call(b"GET / HTTP/1.0\r\n\r\n" + b" " * 64)
        call(frame({"challenge": 7, "proof": None, "node": []}))
        silent = call(close=False)
        self.addCleanup(silent.close)
        bad = it.start_node(1, token="0" * 64)
        self.assertIn("error", json.loads(bad.stdout.readline()))
        bad.wait(60)
        it.start_node(1)
        it.expect(lambda line: line["kind"] == "hello", "the true node joined beside the strangers")
        again = it.start_node(1)
        self.assertIn("error", json.loads(again.stdout.readline()))
        again.wait(60)
        it.post("attempt", agents.attempt(1, ranks=2, nodes=2))
        self.assertEqual(it.end_of(1)["cause"], "done")
        self.assertEqual(silent.recv(4096), b"")  # it never spoke: closed
        silent.close()
        log = (it.spool(0) / "agent.log").read_text()
        self.assertEqual(log.count("it does not know the token"), 1, log)
        self.assertEqual(log.count("it did not speak in time"), 1, log)
        self.assertEqual(log.count("its first bytes are no frame"), 1, log)
        self.no_token_anywhere(it, ready["token"])
        it.finish()

    def test_a_crowd_of_strangers(self):
        """Some strangers never send, some send a byte at a time, some hang up halfway or half: the true nodes join beside them."""
        it = self.agents(3)
        ready = it.start_head()

        def stranger():
            each = socket.create_connection((ready["address"], ready["port"]))
            each.settimeout(60)
            self.addCleanup(each.close)
            return each

        silent = [stranger() for _ in range(200)]  # more than the head keeps
        slow = stranger()
        stop = threading.Event()

        def drip():
            with contextlib.suppress(OSError):
                for byte in frame({"challenge": "0" * 64, "proof": "1" * 64, "node": 1}):
                    slow.sendall(bytes([byte]))
                    if stop.wait(0.2):
                        return
        dripping = threading.Thread(target=drip)
        dripping.start()
        self.addCleanup(dripping.join)
        self.addCleanup(stop.set)
        for _ in range(3):
            halves = stranger()
            halves.sendall(frame({"challenge": "0" * 64})[:20])
            halves.shutdown(socket.SHUT_WR)
            self.assertTrue(gone(halves))
        reset = stranger()
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()
        for node in (1, 2):
            it.start_node(node)
        it.expect(lambda line: line["kind"] == "hello", "the true nodes joined in the crowd")
        it.post("attempt", agents.attempt(1, ranks=3, nodes=3))
        end = it.end_of(1)
        self.assertEqual(end["cause"], "done", f"{end} {it.tell()}")
        self.assertTrue(all(gone(each) for each in (*silent, slow)), "every one of them is closed")
        with self.assertRaises(OSError):  # all have joined: the port is closed
            socket.create_connection((ready["address"], ready["port"]))
        log = (it.spool(0) / "agent.log").read_text()
        for cause in ("too many connections", "it did not speak in time", "it closed without a proof"):
            self.assertEqual(log.count(cause), 1, log)
        it.finish()

    def test_an_impostor_head(self):
        """A node agent that is sent to a stranger does not serve it, and gives nothing away."""
        it = self.agents(2)
        with socket.create_server(("127.0.0.1", 0)) as impostor:
            it.ready = {"address": "127.0.0.1", "port": impostor.getsockname()[1], "token": "7" * 64}
            node = it.start_node(1)
            caller, _ = impostor.accept()
            with caller:
                caller.settimeout(60)
                caller.sendall(frame({"sweep_agent": "0", "challenge": "0" * 64}))
                heard = caller.recv(65536)
                self.assertNotIn(b"7" * 64, heard)
                caller.sendall(frame({"proof": "1" * 64}))
                self.assertIn("does not know the token", json.loads(node.stdout.readline())["error"])
        self.assertNotEqual(node.wait(60), 0)
        self.no_token_anywhere(it, "7" * 64)

    def no_token_anywhere(self, it, token):
        for pid in agents.marked(it.folder):
            for name in ("cmdline", "environ"):
                self.assertNotIn(token.encode(), pathlib.Path("/proc", str(pid), name).read_bytes())
        for path in it.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(token.encode(), path.read_bytes(), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
