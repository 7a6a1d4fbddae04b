"""Python processes, under phantom GPUs or without, that need not import PyTorch, which takes 3 s of CPU time each: one process has imported
it, calls no CUDA function, and forks for each of them. As a program, with a socket as its descriptor 0 and the modules that it imports as
its words, this is that process."""
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading

PR_SET_CHILD_SUBREAPER = 36
LARGEST = 1 << 16  # bytes of a request


class Forked:
    """The part of subprocess.Popen that tests use, of a process that another one has forked for us."""

    def __init__(self, pid, stdout, stderr):
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self.handle = os.pidfd_open(pid)
        self.returncode, self.reader, self.said = None, None, ""

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self.handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.handle)
        return self.returncode

    def poll(self):
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def communicate(self, timeout=None):
        if not self.reader:  # it reads while the process runs, which would never end with a full pipe
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()
        self.wait(timeout)
        self.reader.join()
        if self.stdout.closed:
            return "", ""
        with self.stdout, self.stderr:
            self.stderr.seek(0)
            return self.said, self.stderr.read()

    def read(self):
        self.said = self.stdout.read()

    def send_signal(self, number):
        if self.returncode is None:
            signal.pidfd_send_signal(self.handle, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class Forks:
    """The process that forks. `phantom` are the words that start a command under phantom GPUs; none without."""

    def __init__(self, phantom, modules):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what is forked for us, and left by its parent, is our child
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # How the counters' file is called is read when the libraries are loaded; its folder is the working directory.
            env = {**os.environ, "SWEEP_PHANTOM_COUNTERS": "counters-%r.json", "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen([*phantom, sys.executable, __file__, *modules], env=env, stdin=theirs)

    def start(self, words, folder, env):
        """The Python program and arguments of `words`, in the folder, with these variables besides."""
        read, write = os.pipe()
        stderr = tempfile.TemporaryFile("w+")
        request = json.dumps({"words": list(map(str, words)), "folder": str(folder), "env": env}).encode()
        assert len(request) < LARGEST
        socket.send_fds(self.socket, [request], [write, stderr.fileno()])
        os.close(write)
        return Forked(int(self.socket.recv(LARGEST)), os.fdopen(read), stderr)

    def close(self):
        self.socket.close()
        self.process.wait()


def child(server):
    """Forks for each request; returns in the forked process, with its request and its two descriptors."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(server, LARGEST, 2)
        if not request:
            sys.exit(0)
        read, write = os.pipe()
        if os.fork() == 0:
            pid = os.fork()
            if pid == 0:
                os.close(read)
                os.close(write)
                return json.loads(request), descriptors
            os.write(write, str(pid).encode())
            os._exit(0)
        os.wait()  # so the process has the test as its parent before the test hears of it
        server.send(os.read(read, 20))
        for each in (read, write, *descriptors):
            os.close(each)


def serve():
    for module in sys.argv[1:]:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # no child looks through all of that for garbage, which takes 0.7 s when it ends
    request, descriptors = child(socket.socket(fileno=os.dup(0)))
    for target, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), *descriptors)):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.update(request["env"])
    sys.argv = request["words"]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    serve()
