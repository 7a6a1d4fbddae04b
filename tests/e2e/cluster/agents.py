"""Agents of one allocation on this machine, a spool folder for each node, spoken to as an orchestrator does: lines of
the inbox and the outbox (schema/spool.h)."""
import json
import os
import pathlib
import subprocess
import zlib

from cluster import daemons, proc
from cluster.daemons import MARK, wait_for


def marked(folder):
    """pid -> words of every living process that was started with this folder's mark; zombies are dead."""
    return {pid: proc.words(pid) for pid in daemons.marked(folder)}


def ancestors(pid):
    """pids of its parents, the nearest first."""
    out = []
    while pid > 1:
        pid = int(proc.stat(pid)[1])
        out.append(pid)
    return out


def attempt(number, ranks=1, nodes=1, script=None, deadlines=None):
    """An attempt whose fake ranks follow the script (tests/support/fake_trial.h)."""
    return {"id": number, "trial_id": f"{number:016x}",
            "trial": {"dp": ranks, "nodes": nodes, "labels": json.dumps({"fake": script or {}})},
            "measure": {"warmup_steps": 1, "steps": 3, "repeats": 1},
            "deadlines": {"startup_s": 60, "first_step_s": 60, "step_s": 60, "total_s": 300, "grace_s": 0.3,
                          **(deadlines or {})}}


class Agents:
    def __init__(self, folder, bin_dir, nodes=2, options=(), lease=5.0, rank="fake_rank", slots=1):
        self.folder, self.bin, self.nodes = pathlib.Path(folder), pathlib.Path(bin_dir), nodes
        self.rank = ["--rank-program", self.bin / rank] if rank else []
        self.lease, self.options, self.slots = lease, list(options), slots
        self.environment = {**os.environ, MARK: str(self.folder)}
        self.environment.pop("SSH_CONNECTION", None)
        self.processes, self.seq, self.read, self.read_lines = [], 0, 0, []
        for node in range(nodes):
            self.spool(node).mkdir(parents=True)

    def spool(self, node):
        return self.folder / f"node{node}"

    def _start(self, node, words, **streams):
        log = open(self.spool(node) / "agent.log", "ab")
        command = [self.bin / "sweep-agent", "run", "--spool", self.spool(node), "--allocation", "a-1", "--incarnation", "1",
                   "--slots", self.slots, *self.rank, "--lease", str(self.lease), *self.options, *words]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=log,
                                   env=self.environment, start_new_session=True, **streams)
        log.close()
        self.processes.append(process)
        return process

    def start_head(self):
        head = self._start(0, ["--nodes", self.nodes, "--peers", "launcher", "--interface", "127.0.0.1"],
                           stdin=subprocess.DEVNULL)
        self.ready = json.loads(head.stdout.readline())
        assert self.ready.get("ready"), self.ready
        return self.ready

    def start_node(self, node, **changes):
        """The node agent; its first line is left to be read from .stdout."""
        agent = self._start(node, ["--join"], stdin=subprocess.PIPE)
        said = {"address": self.ready["address"], "port": self.ready["port"], "token": self.ready["token"], "node": node}
        agent.stdin.write((json.dumps({**said, **changes}) + "\n").encode())
        agent.stdin.close()
        return agent

    def start(self):
        self.start_head()
        for node in range(1, self.nodes):
            self.start_node(node)
        self.expect(lambda line: line["kind"] == "hello", "the head agent said hello")
        return self

    def post(self, kind, body):
        self.seq += 1
        text = json.dumps({"allocation": "a-1", "incarnation": 1, "seq": self.seq, "kind": kind, "body": body})
        with open(self.spool(0) / "inbox.jsonl", "ab") as inbox:
            inbox.write(f"{zlib.crc32(text.encode()):08x} {text}\n".encode())

    def lines(self, kind=None, number=None):
        """Each line of the outbox, which only grows, is read once: tests ask fifty times a second."""
        path = self.spool(0) / "outbox.jsonl"
        if path.exists():
            with open(path, "rb") as outbox:
                outbox.seek(self.read)
                new = outbox.read()
            whole = new[:new.rfind(b"\n") + 1]
            self.read += len(whole)
            self.read_lines += [json.loads(row[9:]) for row in whole.split(b"\n")[:-1]]
        return [line for line in self.read_lines if kind in (None, line["kind"]) and number in (None, line["body"].get("attempt"))]

    def expect(self, wanted, what, seconds=120):
        try:
            return wait_for(lambda: next((line for line in self.lines() if wanted(line)), None), seconds, what)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; {self.tell()}") from None

    def end_of(self, number, seconds=120):
        """The closing word on an attempt, which must be the only one."""
        wait_for(lambda: self.lines("attempt_end", number), seconds, f"attempt {number} ended; {self.tell()}")
        ends = self.lines("attempt_end", number)
        assert len(ends) == 1, ends
        return ends[0]["body"]

    def finish(self, now=False):
        self.post("finish", {"now": now})
        codes = []
        for process in self.processes:
            codes.append(process.wait(120))
        return codes

    def tell(self):
        texts = [(self.spool(node) / "agent.log") for node in range(self.nodes)]
        return "\n".join(f"{path}:\n{path.read_text()[-2000:]}" for path in texts if path.exists())

    def roles(self):
        """(role, node) -> pids: head, node, zygote, rank; by the mark of runtime/attempt_token.h and the command line."""
        found = {}
        for pid, words in marked(self.folder).items():
            node = next((int(w.rsplit("node", 1)[1]) for w in words if w.startswith(str(self.folder) + "/node")), None)
            if words and words[0].endswith("sweep-agent"):
                found.setdefault(("agent", node), []).append(pid)
        return found

    def zygote(self, node):
        """The process that the agent of a node forks its ranks from; there is one once an attempt ran there."""
        agent = self.processes[node].pid
        return next(pid for pid, words in marked(self.folder).items() if "zygote" in words and agent in ancestors(pid))

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()
        wait_for(lambda: not marked(self.folder), 60, f"nothing left of the agents: {marked(self.folder)}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
