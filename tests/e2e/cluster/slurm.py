#!/usr/bin/env python3
"""A real Slurm of several nodes on this machine: munged, slurmctld and one slurmd per node, all state under one folder; slurmdbd
with a database too where accounting is asked for.

  with slurm.Cluster(folder, nodes=4, gpus=8) as cluster:
      cluster.run("sinfo")

Modes: "plain" (any user; every node is this host on another port) and "netns" (root; each node has its own network, host
name and process ids, so that links can be cut and nodes powered off). By hand: slurm.py up FOLDER [NODES [MODE]], then
`. FOLDER/env`, until the terminal's Ctrl-C.
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
import zlib

from cluster import accounting, daemons, networks

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol"]
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


def missing(more=()):
    """Programs that a cluster needs and this machine lacks."""
    return [name for name in [*PROGRAMS, *more] if program(name) is None]


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_ports(count):
    """Ports on which no process listens now, one after another."""
    for first in range(20000 + os.getpid() * 64 % 20000, 60000, count):  # clusters that start at once do not meet
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return list(range(first, first + count))
    raise RuntimeError("no free ports")


class Cluster(daemons.Cluster):
    def __init__(self, folder, nodes=4, gpus=8, cpus=16, mode="plain", options=(), with_accounting=False,
                 track=None, services=0):
        super().__init__()
        self.folder = pathlib.Path(folder).resolve()
        self.services = services  # nodes more, of partition `service`
        self.mode, self.gpus, self.cpus, self.options = mode, gpus, cpus, list(options)
        stem = f"w{zlib.crc32(str(self.folder).encode()) % 46656:x}n"  # two clusters on one machine differ in cgroups and namespaces
        self.nodes = [f"{stem}{i + 1}" for i in range(nodes + services)]
        self.stem = stem
        self.track = track or ("cgroup" if os.geteuid() == 0 and FREEZER.is_dir() else "linuxproc")
        self.networks = networks.Networks(stem, self.nodes) if mode == "netns" else None
        self.accounting = accounting.Accounting(self.folder) if with_accounting else None
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith("SLURM_")},
                            **(self.accounting.environment() if self.accounting else {}),
                            "SLURM_CONF": str(self.folder / "slurm.conf"), daemons.MARK: str(self.folder)}

    # --- the folder

    def _write_configuration(self):
        for name in ("munge", "run", "log", "state", "dev"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "munge").chmod(0o700 if not self.networks else 0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        for i in range(self.gpus):
            (self.folder / "dev" / f"nvidia{i}").touch()  # an empty file passes for a device
        ports = free_ports(len(self.nodes) + 2)
        host = self.networks.head if self.networks else socket.gethostname()
        address = self.networks.head_address if self.networks else "127.0.0.1"
        (self.folder / "slurm.conf").write_text(self._slurm_conf(host, address, ports))
        if self.accounting:
            self.accounting.write_configuration(ports[1])
        gpus = f"Name=gpu File={self.folder}/dev/nvidia[0-{self.gpus - 1}]" if self.gpus else ""
        (self.folder / "gres.conf").write_text(f"NodeName={','.join(self.nodes)} {gpus}\n" if gpus else "")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n"
                                                 "CgroupAutomount=no\nConstrainDevices=no\n")
        if self.networks:
            lines = ["127.0.0.1 localhost", f"{self.networks.head_address} {self.networks.head}"]
            lines += [f"{self.networks.address(node)} {node}" for node in self.nodes]
            (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        (self.folder / "env").write_text("".join(f"export {name}='{self.environment[name]}'\n"
                                                 for name in ("SLURM_CONF", daemons.MARK)))

    def _slurm_conf(self, host, address, ports):
        user = getpass.getuser()
        bind = "" if self.networks else "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"
        lines = [
            f"ClusterName={self.stem}", f"SlurmctldHost={host}({address})", f"SlurmctldPort={ports[0]}", bind,
            f"SlurmUser={user}", f"SlurmdUser={user}", "AuthType=auth/munge", "CredType=cred/munge",
            f"AuthInfo=socket={self.folder}/munge/sock", f"StateSaveLocation={self.folder}/state",
            f"SlurmctldPidFile={self.folder}/run/slurmctld.pid", f"SlurmctldLogFile={self.folder}/log/slurmctld.log",
            f"SlurmdSpoolDir={self.folder}/run/spool.%n", f"SlurmdPidFile={self.folder}/run/slurmd.%n.pid",
            f"SlurmdLogFile={self.folder}/log/slurmd.%n.log", "SlurmdParameters=config_overrides", "MpiDefault=none",
            "TaskPlugin=task/none", f"ProctrackType=proctrack/{self.track}", "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core", "GresTypes=gpu" if self.gpus else "", "ReturnToService=2",
            "SlurmdTimeout=10", "SlurmctldTimeout=10", "KillWait=3", "UnkillableStepTimeout=30", "MessageTimeout=5",
            "PropagateResourceLimits=NONE", "InactiveLimit=0",
            "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1", *self.options,
            *(self.accounting.options(ports[1]) if self.accounting else [])]
        for i, node in enumerate(self.nodes):
            where = self.networks.address(node) if self.networks else "127.0.0.1"
            name = node if self.networks else host
            gres = f"Gres=gpu:{self.gpus}" if self.gpus else ""
            lines.append(f"NodeName={node} NodeHostname={name} NodeAddr={where} Port={ports[2 + i]} CPUs={self.cpus} "
                         f"SocketsPerBoard=1 CoresPerSocket={self.cpus} RealMemory=4000 {gres}")
        main = self.nodes[:len(self.nodes) - self.services]
        if self.services:
            lines.append(f"PartitionName=service Nodes={','.join(self.nodes[len(main):])} MaxTime=INFINITE OverSubscribe=NO")
        lines.append(f"PartitionName=main Nodes={','.join(main)} Default=YES MaxTime=INFINITE OverSubscribe=NO")
        lines.append(f"PartitionName=small Nodes={self.nodes[0]} MaxTime=10")
        return "\n".join(line for line in lines if line) + "\n"

    # --- daemons

    def _daemon(self, name, command, where=None):
        if self.networks and where:
            command = [*self.networks.machine(where, self.folder / "hosts"), *command]
        self.start_daemon(name, command)

    def _start_once(self):
        self._write_configuration()
        if self.networks:
            self.networks.make()
        self._daemon("munged", [program("munged"), "--foreground", "--force", "--num-threads=2",
                                f"--key-file={self.folder}/munge/key", f"--socket={self.folder}/munge/sock",
                                f"--pid-file={self.folder}/munge/pid", f"--log-file={self.folder}/munge/log",
                                f"--seed-file={self.folder}/munge/seed"])
        daemons.wait_for((self.folder / "munge" / "sock").exists, 60, "munged listens")
        if self.accounting:
            self._daemon("mariadbd", self.accounting.database_command())
            daemons.wait_for(self.accounting.database_answers, 60, "mariadbd answers", 0.05)
            self.start_accounting()
        self._daemon("slurmctld", [program("slurmctld"), "-D"], self.networks and self.networks.head)
        for node in self.nodes:
            self.start_node(node)
        daemons.wait_for(lambda: set(self.states().values()) == {"idle"}, 60, f"every node idle: {self.tell()}", 0.05)
        self.run("srun", f"-N{len(self.nodes) - self.services}", "true", timeout=20)  # the first step after a cold start fails at times
        daemons.wait_for(lambda: set(self.states().values()) == {"idle"}, 60, "every node idle again", 0.05)

    def start_accounting(self):
        """slurmdbd; also after it was killed."""
        self._daemon("slurmdbd", [program("slurmdbd"), "-D"], self.networks and self.networks.head)
        daemons.wait_for(self.accounting.answers, 60, "slurmdbd listens", 0.05)

    def enforce_limits(self, wanted):
        """Whether slurmctld keeps to the limits of the accounts; it must start anew for that."""
        conf, line = self.folder / "slurm.conf", "AccountingStorageEnforce=limits\n"
        conf.write_text(conf.read_text().replace(line, "") + (line if wanted else ""))
        self.daemons["slurmctld"].stop()
        self.daemons["slurmctld"].start()
        daemons.wait_for(lambda: set(self.states().values()) == {"idle"}, 60, f"every node idle: {self.tell()}", 0.05)

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        for last in (False, True):
            try:
                self._start_once()
                return self
            except (TimeoutError, subprocess.SubprocessError):
                told = self.tell()
                self.stop()
                if last:
                    raise RuntimeError(f"the test cluster does not start:\n{told}") from None
        raise AssertionError("not reached")

    def stop(self):
        """Ends every daemon, job and leftover, and the namespaces and cgroups."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            if self.daemons.get("slurmctld") and self.daemons["slurmctld"].alive():
                self.run("scancel", "-u", getpass.getuser(), check=False, timeout=10)
        for name in reversed(list(self.daemons)):
            self.daemons[name].stop(number=signal.SIGKILL if self.networks and name != "munged" else signal.SIGTERM)
        daemons.kill_marked(self.folder)
        if self.networks:
            self.networks.remove()
        for node in self.nodes:
            for path, folders, _ in os.walk(FREEZER / f"slurm_{node}", topdown=False):
                for folder in folders:
                    with contextlib.suppress(OSError):
                        os.rmdir(os.path.join(path, folder))
            with contextlib.suppress(OSError):
                (FREEZER / f"slurm_{node}").rmdir()
        for name in ("state", "run", "munge", "accounting"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.daemons.clear()

    # --- nodes

    def start_node(self, node):
        """slurmd of one node; also after kill_node and power_off."""
        self._daemon(f"slurmd.{node}", [program("slurmd"), "-D", "-N", node], node)

    def kill_node(self, node):
        """kill -9 of the node's slurmd; with namespaces the whole node is off, its processes too."""
        self.daemons[f"slurmd.{node}"].kill()

    def cut(self, node):
        self.networks.cut(node)

    def heal(self, node):
        self.networks.heal(node)

    # --- questions

    def inside(self):
        """The beginning of a command line on the head node."""
        return self.networks.inside(self.networks.head) if self.networks else []

    def states(self):
        with contextlib.suppress(subprocess.SubprocessError):
            lines = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %t", timeout=10).splitlines()
            return dict(line.split() for line in lines)
        return {}

    def jobs(self, states="all"):
        lines = self.run("squeue", "-h", "-t", states, "-o", "%i|%T|%j|%D|%l").splitlines()
        return [line.split("|") for line in lines if line]

    def drained(self):
        return [node for node, state in self.states().items() if "drain" in state or "down" in state]


def main():
    folder, nodes, mode = sys.argv[2], int((sys.argv[3:] + ["4"])[0]), (sys.argv[4:] + ["plain"])[0]
    with Cluster(folder, nodes, mode=mode) as cluster:
        print(f"{cluster.states()}; environment in {cluster.folder}/env", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
