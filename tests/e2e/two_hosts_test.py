#!/usr/bin/env python3
"""two_hosts_test.py BIN FAKE_RANK: one sweep, orchestrators on two hosts, and a shared folder that caches attributes (tests/support/
shared_folder.cpp). Trials run on a third host, reached by ssh. Root only.

Each host has its own network, name, boot id and mount. Whatever happens to the first orchestrator (its host is off, or started
anew; its process or its shared folder stands still and wakes up), the second one takes the same allocation over, once it may;
two never run the sweep; nothing is cancelled and no trial runs twice. Further words choose cases.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import uuid

import database
from cluster import daemons, proc, sshd

TRIALS, END_SECONDS = 12, 600
BY_DEFAULT = ("folder_stands_still", "host_started_anew")  # the others: by hand, a minute each


class Host:
    """A login host: namespaces that its mount of the shared folder holds."""

    def __init__(self, test, name):
        self.test, self.name, self.folder = test, name, None

    def start(self):
        """Also after stop(): with another boot id."""
        boot = self.test.root / f"{self.name}.boot"
        boot.unlink(missing_ok=True)
        boot.write_text(f"{uuid.uuid4()}\n")
        setup = 'hostname "$1" && mount --bind "$2" /proc/sys/kernel/random/boot_id && shift 2 && exec "$@"'
        self.folder = subprocess.Popen(
            [*self.test.cluster.networks.inside(self.name), "unshare", "--uts", "--mount", "--", "sh", "-c", setup, "sh", self.name, boot,
             self.test.bin / "shared_folder", self.test.root / "server", self.test.shared], env=self.test.environment)
        daemons.wait_for(lambda: subprocess.run([*self.inside(), "mountpoint", "-q", self.test.shared], check=False).returncode == 0,
                         20, "the folder is mounted")

    def stop(self):
        """Off, with every process on it."""
        inside = proc.link(self.folder.pid, "ns/uts")
        for pid in proc.pids():
            if proc.link(pid, "ns/uts") == inside:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        self.folder.wait()

    def pause(self, file):
        """Its shared folder answers nothing, from a moment on in which it holds no lock on this file: a server gives locks of a host
        that is away to others after a while, which this folder does not."""
        inode = f":{os.stat(file).st_ino} "

        def without_lock():
            self.folder.send_signal(signal.SIGSTOP)
            daemons.wait_for(lambda: proc.stat(self.folder.pid)[0] == "T", 10, "it stands still")
            if inode not in pathlib.Path("/proc/locks").read_text():
                return True
            self.folder.send_signal(signal.SIGCONT)
            return False
        daemons.wait_for(without_lock, 30, "a moment without a lock", 0.01)

    def inside(self):
        return ["nsenter", f"--target={self.folder.pid}", "--net", "--uts", "--mount", "--"]

    def sweep(self, *words):
        """Started in the background."""
        with self.test.log.open("ab") as log:
            log.write(f"--- sweep {' '.join(words)} on {self.name}\n".encode())
            log.flush()
            return subprocess.Popen([*self.inside(), self.test.bin / "sweep", *words, "--db", self.test.db, "--rank", self.test.rank],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.test.environment, cwd="/")

    def say(self, *words):
        """(exit code, what it said)."""
        done = subprocess.run([*self.inside(), self.test.bin / "sweep", *words, "--db", self.test.db], env=self.test.environment,
                              capture_output=True, text=True, check=False, timeout=END_SECONDS, cwd="/")
        return done.returncode, done.stdout + done.stderr


class Test:
    def __init__(self, bin_dir, rank, root):
        self.bin, self.rank, self.root = bin_dir, rank, root
        self.shared, self.log = root / "shared", root / "log"
        mark = root / "sshd"
        self.environment = {**os.environ, daemons.MARK: str(mark), "SWEEP_SITE": str(root / "no-site.yaml")}
        self.cluster = sshd.Cluster(mark, 3, self.environment, {daemons.MARK: mark}, "netns")
        self.compute, *names = self.cluster.hosts
        self.hosts = [Host(self, name) for name in names]

    def __enter__(self):
        for name in ("server", "shared"):
            (self.root / name).mkdir()
        self.cluster.start()
        for host in self.hosts:
            host.start()
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            if host.folder and host.folder.poll() is None:
                host.stop()
        self.cluster.stop()
        daemons.kill_marked(self.cluster.folder)

    # --- one case

    def begin(self, name):
        """The first orchestrator, once there are two results."""
        self.db, self.server_db = self.shared / f"{name}.db", self.root / "server" / f"{name}.db"
        grid = self.root / f"{name}.yaml"
        grid.write_text(json.dumps({
            "name": name,
            "model": {"family": "llama", "layers": 2, "hidden_size": 64, "heads": 4, "kv_heads": 4, "intermediate_size": 172,
                      "vocab_size": 256, "tie_embeddings": False},
            "base": {"hardware": "cpu", "gpus_per_node": 1}, "grid": {"seq_len": {"range": [64, 63 + TRIALS, 1]}},
            "derive": {"fake": "0", "fake_step_ms": "300"}, "measure": {"warmup_steps": 1, "steps": 2},
            "launch": {"ssh": {"hosts": [{"host": self.compute, "slots": 1}], "config": str(self.cluster.config),
                               "directory": str(self.root / "far"), "silence_seconds": 300}}}))
        first = self.hosts[0].sweep("run", str(grid))
        daemons.wait_for(lambda: len(self.results()) >= 2, 200, "two results", 0.1)
        return first

    def rows(self, sql):
        """The content on the server's own disk; nothing while a process writes."""
        try:
            return database.rows(self.server_db, sql)
        except Exception as error:  # sqlite3's: no file yet, no tables yet, locked
            if "sqlite3" not in type(error).__module__ + str(type(error)):
                raise
            return []

    def results(self):
        return self.rows("select outcome from results where outcome is not null")

    def holder(self):
        return (self.rows("select host from lease") or [(None,)])[0][0]

    def ends_well(self, orchestrator):
        assert orchestrator.wait(END_SECONDS) == 0, f"exit {orchestrator.returncode}"
        database.check(self.server_db)
        assert self.results() == [("ok",)] * TRIALS, self.results()
        again = self.rows("select outcome, count(*) from result where outcome <> 0 group by outcome")
        assert not again, f"(outcome, attempts) that were not ok: {again}"
        assert self.rows("select count(*) from attempt") == [(TRIALS,)], "each trial ran once"
        assert self.rows("select count(*) from allocation") == [(1,)], "one allocation, taken over"

    def words(self):
        return self.log.read_text(errors="replace")


def taken_from(test, first, wake_up):
    """The second host takes over from one that stands still; then that one wakes up, and must end by itself."""
    second = test.hosts[1].sweep("resume", "--take-over")
    daemons.wait_for(lambda: test.holder() == test.hosts[1].name, END_SECONDS, "the second one has the lease", 0.1)
    wake_up()
    assert first.wait(200) == 2, f"the first one ended with {first.returncode}"
    assert "was lost to process" in test.words()
    test.ends_well(second)


def process_stands_still(test):
    first = test.begin("process")
    first.send_signal(signal.SIGSTOP)
    taken_from(test, first, lambda: first.send_signal(signal.SIGCONT))


def folder_stands_still(test):
    """The first host's network pauses: its orchestrator hangs in the shared folder."""
    first = test.begin("folder")
    test.hosts[0].pause(test.server_db)
    taken_from(test, first, lambda: test.hosts[0].folder.send_signal(signal.SIGCONT))


def host_off(test):
    """For good: nothing can say so but a person; every command says since when nothing was heard."""
    first = test.begin("off")
    test.hosts[0].stop()
    first.wait()
    second = test.hosts[1]
    assert second.sweep("resume").wait(END_SECONDS) == 1, "it watches until it hears nothing, and then ends"
    wanted = f"sweep resume off --db {test.db} --take-over"
    assert wanted in test.words(), test.words()
    code, said = second.say("status")
    assert code == 0 and "nothing was heard of process" in said and "run by" not in said, said
    code, said = second.say("stop")
    assert code == 1 and wanted in said, said
    code, said = second.say("clean")
    assert code == 0 and wanted in said, said
    test.ends_well(second.sweep("resume", "--take-over"))
    test.hosts[0].start()


def host_started_anew(test):
    """Another boot id under its name: what ran before is gone, and no user needs to say so."""
    first = test.begin("anew")
    test.hosts[0].stop()
    first.wait()
    test.hosts[0].start()
    test.ends_well(test.hosts[0].sweep("resume"))


def main():
    bin_dir, rank = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    lacks = sshd.missing() + [name for name in ("shared_folder",) if not (bin_dir / name).exists()]
    if os.geteuid() != 0 or lacks or not os.path.exists("/dev/fuse"):
        print(f"skipped: it needs root and FUSE; this machine lacks {', '.join(lacks) or 'one of them'}")
        return 77
    cases = {each.__name__: each for each in (process_stands_still, folder_stands_still, host_off, host_started_anew)}
    with tempfile.TemporaryDirectory(prefix="sweep-hosts-") as folder:
        pathlib.Path(folder).chmod(0o711)
        with Test(bin_dir, rank, pathlib.Path(folder)) as test:
            for name in sys.argv[3:] or BY_DEFAULT:
                try:
                    cases[name](test)
                except BaseException:
                    print(test.words(), flush=True)
                    raise
                print(f"{name}: {TRIALS} trials, each run once", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
