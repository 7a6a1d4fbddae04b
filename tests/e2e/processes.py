"""Finds and names the processes of one sweep by walking /proc, however often they were forked, reparented or put into a
PID namespace: each inherits a mark in its environment (a forked rank shows the environment of its zygote)."""
import contextlib
import os
import pathlib
import pty
import subprocess
import uuid

from cluster.daemons import wait_for

MARK = "SWEEP_TEST_MARK"


def marked_environment():
    """(environment, mark): what to start `sweep` with, so that its processes can be found."""
    mark = uuid.uuid4().hex
    return {**os.environ, MARK: mark}, mark


def working_in(folder):
    """Processes whose working folder this is: the program may have a pid of its own namespace."""
    out = []
    for each in pathlib.Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if each.readlink() == folder:
                out.append(int(each.parent.name))
    return out


def on_a_terminal(command, answer, environment, folder, seconds):
    """(exit code, what it said) of a command whose streams are a terminal at which this line is typed."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True, cwd=folder)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said = b""
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while now := os.read(ours, 4096):
            said += now
    os.close(ours)
    return run.wait(seconds), said


class Process:
    def __init__(self, pid):
        folder = pathlib.Path("/proc") / str(pid)
        self.pid = pid
        # The second field of stat is the name in parentheses and may hold anything; what follows the last one does not.
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        self.state, self.parent, self.started = fields[0], int(fields[1]), int(fields[19])
        self.words = [w.decode(errors="replace") for w in (folder / "cmdline").read_bytes().split(b"\0") if w]
        self.environment = (folder / "environ").read_bytes().split(b"\0")

    @property
    def program(self):
        return os.path.basename(self.words[0]) if self.words else ""

    def __repr__(self):
        return f"{self.pid} (parent {self.parent}, {self.state}) {' '.join(self.words)[:160]}"


def of_mark(mark):
    """Every living process that carries the mark, but for this one; zombies are dead."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                process = Process(int(entry))
            except (OSError, IndexError, ValueError):
                continue  # gone meanwhile
            if wanted in process.environment and process.state not in "ZX":
                found.append(process)
    return found


def attempt_of(process):
    """The attempt a process belongs to by its SWEEP_ATTEMPT (runtime/attempt_token.h); 0: the agent's own, as the zygote."""
    for variable in process.environment:
        if variable.startswith(b"SWEEP_ATTEMPT="):
            return int(variable.rpartition(b"/")[2] or b"0")
    return 0


def by_role(mark):
    """role -> processes. A zygote's children look like it but for the attempt in their mark."""
    roles = {"sweep": [], "agent": [], "zygote": [], "rank": []}
    for process in of_mark(mark):
        if process.program in ("sweep", "sweep-agent"):
            roles[process.program.removeprefix("sweep-")].append(process)
        elif process.program == "sweep-rank":
            roles["zygote" if "zygote" in process.words and not attempt_of(process) else "rank"].append(process)
    return roles


def wait_until_none(mark, seconds=60):
    """Nothing of the sweep is left; an AssertionError that lists what is."""
    try:
        wait_for(lambda: not of_mark(mark), seconds, "no process left")
    except TimeoutError:
        left = of_mark(mark)
        assert not left, "processes left:\n  " + "\n  ".join(map(repr, left))
