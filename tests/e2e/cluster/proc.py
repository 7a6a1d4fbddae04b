"""What /proc says of processes. Of one that is gone, or another user's, there is nothing: empty words, no environment, state X."""
import contextlib
import os
import pathlib


def pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def content(pid, name):
    """The bytes of one of its files."""
    with contextlib.suppress(OSError):
        return pathlib.Path("/proc", str(pid), name).read_bytes()
    return b""


def link(pid, name):
    """What one of its links names."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/{name}")
    return ""


def stat(pid):
    """Fields of its stat: state, parent, ... The name before them stands in parentheses and may hold anything."""
    return content(pid, "stat").decode(errors="replace").rpartition(")")[2].split() or ["X", "0"]


def lives(pid):
    return stat(pid)[0] not in "ZX"


def words(pid):
    """Its command line."""
    return [word.decode(errors="replace") for word in content(pid, "cmdline").split(b"\0") if word]


def environment(pid):
    """NAME=value, as it was started with."""
    return content(pid, "environ").split(b"\0")


def carrying(variable):
    """Living processes, but for this one, that were started with this NAME=value."""
    return [pid for pid in pids() if pid != os.getpid() and variable.encode() in environment(pid) and lives(pid)]


def attempt_of(pid):
    """(key of the allocation and node, attempt) a process belongs to by its mark (runtime/attempt_token.h); 0: the agent's own."""
    for variable in environment(pid):
        if variable.startswith(b"SWEEP_ATTEMPT="):
            key, _, number = variable[len(b"SWEEP_ATTEMPT="):].decode(errors="replace").rpartition("/")
            return key, int(number or 0)
    return "", 0
