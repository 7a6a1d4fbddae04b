"""Daemons of a test cluster: started in the foreground in sessions of their own, found again by a mark in the environment,
and ended without leaving anything."""
import os
import pathlib
import signal
import subprocess
import time

from cluster import proc

MARK = "SWEEP_TEST_CLUSTER"


def wait_for(condition, seconds, what, pause=0.02):
    """Polls until condition() is true; a TimeoutError that says what was waited for."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise TimeoutError(f"after {seconds} s still not: {what}")
        time.sleep(pause)


def marked(folder):
    """Pids of living processes that carry the cluster's mark: daemons, job steps, and what jobs left."""
    return proc.carrying(f"{MARK}={folder}")


def kill_marked(folder, keep=(), seconds=60):
    """Ends every process of the cluster; an AssertionError names what does not go."""
    until = time.monotonic() + seconds
    while True:
        left = [pid for pid in marked(folder) if pid not in keep]
        if not left:
            return
        assert time.monotonic() < until, f"processes that do not end: {left}"
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


class Daemon:
    """One daemon: start, stop, kill, and start again."""

    def __init__(self, name, command, log, environment):
        self.name, self.command, self.log, self.environment = name, command, log, environment
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.environment, start_new_session=True)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        if self.alive():
            self.process.send_signal(number)

    def stop(self, seconds=5, number=signal.SIGTERM):
        if not self.alive():
            return
        self.process.send_signal(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process is not None:
            self.process.wait()

    def tail(self, lines=15):
        try:
            return "\n".join(pathlib.Path(self.log).read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


class Cluster:
    """A batch system of daemons, with its state in one folder. REQUIRES: folder, environment, inside(), start() and stop()."""

    def __init__(self):
        self.daemons = {}

    def start_daemon(self, name, command, **more):
        daemon = Daemon(name, command, self.folder / "log" / f"{name}.out", {**self.environment, **more})
        self.daemons[name] = daemon
        daemon.start()

    def run(self, *words, check=True, timeout=60):
        done = subprocess.run([*self.inside(), *words], env=self.environment, capture_output=True, text=True, check=check,
                              timeout=timeout)
        return done.stdout.strip()

    def logs(self):
        return sorted((self.folder / "log").glob("*"))

    def tell(self):
        """Last words of every daemon, for a failed test."""
        return "\n".join(f"== {log}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:]) for log in self.logs())

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
