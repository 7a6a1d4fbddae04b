#!/usr/bin/env python3
"""Real sshd instances, one per host, on this machine: own keys, own ports, everything under one folder, nothing in /etc,
as an ordinary user or root.

  with sshd.Cluster(folder, hosts=4) as cluster:
      subprocess.run(["ssh", "-F", cluster.config, cluster.hosts[0], "true"])

By hand: sshd.py FOLDER [HOSTS], until the terminal's Ctrl-C.
"""
import contextlib
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib

from cluster import networks, proc

PROGRAMS = ["sshd", "ssh", "ssh-keygen"]


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Programs that the hosts need and this machine lacks."""
    return [name for name in PROGRAMS if program(name) is None]


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class Cluster:
    def __init__(self, folder, hosts=2, environment=None, session=None, mode="plain", own=None):
        """session: variables of every session; sshd hands none of its own on. own: host's number -> variables of it alone. mode netns (root): each host has its own network,
        name and process ids, so that links can be cut and hosts powered off; ssh then runs on the head (inside())."""
        self.folder = pathlib.Path(folder).resolve()
        number = zlib.crc32(str(self.folder).encode())
        stem = f"s{number % 46656:x}n" if mode == "netns" else "host"
        self.hosts = [f"{stem}{i + 1}" for i in range(hosts)]
        self.networks = networks.Networks(stem, self.hosts) if mode == "netns" else None
        self.port = 20000 + number % 40000  # ssh names shared connections by address and port: another cluster's differ
        self.environment = environment or dict(os.environ)
        self.config = self.folder / "ssh_config"
        # A home of their own: what the user's shell does at its start (as locking something) is none of a test's business.
        self.session = {"HOME": self.folder / "home", **(session or {})}
        self.own = own or {}
        self.daemons, self.where = {}, {}

    def _write(self):
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        (self.folder / "home").mkdir(exist_ok=True, mode=0o700)
        for name in ("id", "host"):
            if not (self.folder / name).exists():
                subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "sweep-test", "-f",
                                self.folder / name], check=True)
        shutil.copy(self.folder / "id.pub", self.folder / "authorized_keys")
        (self.folder / "authorized_keys").chmod(0o644)
        if os.geteuid() == 0:
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # compiled into sshd
        public = (self.folder / "host.pub").read_text().split()[:2]
        known, config = [], []
        for i, host in enumerate(self.hosts):
            address = self.networks.address(host) if self.networks else f"127.0.0.{11 + i}"
            port = self.where.setdefault(host, (address, self.port if self.networks else free_port(address)))[1]
            (self.folder / f"{host}.conf").write_text(
                f"ListenAddress {address}:{port}\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/authorized_keys\n"
                f"PidFile {self.folder}/{host}.pid\nStrictModes no\nUsePAM no\nMaxStartups 100\nMaxSessions 100\n"
                "PasswordAuthentication no\nKbdInteractiveAuthentication no\nClientAliveInterval 5\nClientAliveCountMax 2\n"
                + self._variables(i))
            known.append(f"[{address}]:{port} {' '.join(public)}\n")
            config.append(f"Host {host}\n  HostName {address}\n  Port {port}\n")
        (self.folder / "known_hosts").write_text("".join(known))
        self.config.write_text("".join(config) + f"Host *\n  User {getpass.getuser()}\n  IdentityFile {self.folder}/id\n"
                               f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.folder}/known_hosts\n"
                               "  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
                               "  KexAlgorithms curve25519-sha256\n")
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n")

    def _variables(self, number):
        variables = {**self.session, **self.own.get(number, {})}
        return "SetEnv " + " ".join(f'"{name}={value}"' for name, value in variables.items()) + "\n"  # only one of several lines counts

    def inside(self):
        """The beginning of a command line that reaches the hosts."""
        return self.networks.inside(self.networks.head) if self.networks else []

    def _listens(self, host):
        address, port = self.where[host]
        if self.networks:
            answer = subprocess.run([*self.inside(), "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"], capture_output=True)
            return answer.returncode == 0
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
            return True
        return False

    def start_host(self, host):
        machine = self.networks.machine(host, self.folder / "hosts") if self.networks else []
        with open(self.folder / f"{host}.log", "ab") as log:
            self.daemons[host] = subprocess.Popen(
                [*machine, program("sshd"), "-D", "-e", "-f", self.folder / f"{host}.conf"], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env=self.environment, start_new_session=True)
        until = time.monotonic() + 60
        while not self._listens(host):
            assert self.daemons[host].poll() is None and time.monotonic() < until, \
                (self.folder / f"{host}.log").read_text()
            time.sleep(0.02)

    def stop_host(self, host):
        """The daemon and every connection through it."""
        if host in self.daemons:
            self.cut(host)
            daemon = self.daemons.pop(host)
            daemon.kill() if self.networks else daemon.terminate()
            daemon.wait(60)

    def cut(self, host):
        """Ends every connection that came in through this host's sshd; the daemon goes on. How many there were."""
        cut, listeners = 0, [self.daemons[host].pid]
        if self.networks:
            listeners = [pid for pid in self.networks.members(host) if b"[listener]" in proc.content(pid, "cmdline")]
        for pid in proc.pids():
            if int(proc.stat(pid)[1]) in listeners:  # a child of the listening one serves one connection
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    cut += 1
        return cut

    def start(self):
        self._write()
        if self.networks:
            self.networks.make()
        for host in self.hosts:
            self.start_host(host)
        return self

    def stop(self):
        for host in list(self.daemons):
            self.stop_host(host)
        if self.networks:
            self.networks.remove()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def main():
    with Cluster(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2) as cluster:
        print(f"ssh -F {cluster.config} {cluster.hosts[0]}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
