"""Four nodes under Slurm or behind sshd, spoken to in one way: what to write into a grid to reach them, which processes
stand where, and how nodes, links, daemons and disks are taken away and given back.

As root every node has its own network, host name and process ids; as an ordinary user all nodes are this machine, and
what needs more than that cannot be taken away (`can`).
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import time
import uuid

from cluster import agents, daemons, proc, slurm, sshd

GPUS = 8
SERVICES = {"slurmd", "slurmctld", "munged", "sshd", "sh", "sleep", "unshare", "nsenter", "shared_folder", "umount",
            "mountpoint"}  # processes of a node itself
# How the disk shows itself: as it is; with a rename that is not atomic, mounted by each node itself through FUSE; as a filesystem that is
# on no list, to login hosts with kernels of their own, and with the database on it too.
FOLDERS = ["plain", "late", "unlisted"]
RENAME_GAP_MS = 150
DISK_MIB = 512  # four logs of 64 MiB at once, and those that are kept: a full disk is a fault of its own (fill_disk)


def signal_all(pids, number):
    """To each of them that still lives; how many there were."""
    reached = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            reached += 1
    return reached


class Fleet:
    """Owns the folder, the small disk in it that the spools lie on, and the cluster; `kind` is its name for `--on`. `bin_dir` is where
    what shows the disk in another way lies (FOLDERS)."""

    kind = ""
    can: set[str] = set()

    def __init__(self, folder, cluster, mark, shows="plain", bin_dir=None):
        self.folder, self.cluster, self.mark = pathlib.Path(folder), cluster, str(mark)
        self.isolated = cluster.networks is not None
        self.disk, self.shows, self.bin, self.server = self.folder / "disk", shows, bin_dir, None
        self.hosts = ["login-a", "login-b"] if self.isolated else []  # hosts on which an orchestrator can run, with names of their own

    def start(self):
        self.disk.mkdir(mode=0o755)
        if self.isolated:  # before the nodes are made: they see the mounts of that moment
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "sweep-test", self.disk], check=True)
        if self.shows == "late":
            self.serve()
        self.cluster.start()
        return self

    def serve(self):
        """The disk, seen through a folder whose rename leaves a gap."""
        behind, self.disk = self.disk, self.folder / "late"
        self.disk.mkdir(mode=0o755)
        words = [str(self.bin / "shared_folder"), str(behind), str(self.disk), str(RENAME_GAP_MS)]
        self.server = subprocess.Popen(words)
        if self.isolated:  # each node mounts it itself: one host's kernel orders what is done through one mount
            self.cluster.networks.prepare = (f"umount --lazy {self.disk} && {{ {' '.join(words)} & }} && "
                                             f"until mountpoint -q {self.disk}; do sleep 0.05; done")
        daemons.wait_for(lambda: os.path.ismount(self.disk), 60, "the folder is mounted")

    def stop(self):
        self.thaw()
        self.cluster.stop()
        daemons.kill_marked(self.mark)
        if self.server:
            subprocess.run(["umount", "--lazy", self.disk], check=False)
            self.server.wait()
        if self.isolated:
            subprocess.run(["umount", "--lazy", self.folder / "disk"], check=False)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def inside(self, host=None):
        """The beginning of a command line of a login host; none of them by name: of this machine."""
        if host is None:
            return self.cluster.inside()
        if self.shows != "unlisted":
            return [*self.cluster.inside(), "unshare", "--uts", "--", "sh", "-c", 'hostname "$1" && shift && exec "$@"', "sh", host]
        boot = self.folder / f"{host}.boot"  # machines of their own, which share no kernel
        if not boot.exists():
            boot.write_text(f"{uuid.uuid4()}\n")
        setup = 'hostname "$1" && mount --bind "$2" /proc/sys/kernel/random/boot_id && shift 2 && exec "$@"'
        return [*self.cluster.inside(), "unshare", "--uts", "--mount", "--", "sh", "-c", setup, "sh", host, str(boot)]

    # --- who is there

    def roles(self):
        """role -> pids of what a sweep is made of: sweep, head, node, bridge, zygote, rank, trainer."""
        found = {}
        for pid, words in agents.marked(self.mark).items():
            role = role_of(pid, words)
            if role:
                found.setdefault(role, []).append(pid)
        return found

    def left(self):
        """The processes on the nodes that are no service of theirs, without the orchestrator's machine; text for people."""
        told = {pid: f"{pid} {' '.join(words)[:120]}" for pid, words in agents.marked(self.mark).items() if role_of(pid, words)}
        for node in self.nodes if self.isolated else []:
            told.update(self.left_on(node))
        return told

    def left_on(self, node):
        """The same of one isolated node."""
        told = {}
        for pid in self.cluster.networks.members(node):
            words = proc.words(pid)
            if name_of(words) not in SERVICES or words[1:] == ["1000"]:  # a bare daemon is `sleep 1000`
                told[pid] = f"{pid} on {node}: {' '.join(words)[:120]}"
        return told

    def tend(self, spared):
        """Repairs what a patient administrator would while a sweep waits; `spared` text names the nodes that faults still hold.
        What it was, for people."""
        return ""

    def thaw(self):
        """Nothing stays stopped."""
        stopped = [pid for pid in daemons.marked(self.mark) if proc.stat(pid)[0] == "T"]
        return signal_all(stopped, signal.SIGCONT)

    # --- what can be taken away

    def fill_disk(self):
        """Not a byte more fits on the spools' disk."""
        with contextlib.suppress(OSError), open(self.disk / "full", "wb") as full:
            while True:
                full.write(bytes(1 << 20))
                full.flush()

    def empty_disk(self):
        (self.disk / "full").unlink(missing_ok=True)

    def cut_link(self, node):
        self.cluster.networks.cut(node)

    def heal_link(self, node):
        self.cluster.networks.heal(node)

    def service(self, name, where):
        """Pids of a daemon of this name on a node or the head."""
        return [pid for pid in self.cluster.networks.members(where) if name_of(proc.words(pid)) == name]


class SlurmFleet(Fleet):
    kind = "slurm"

    def __init__(self, folder, nodes=4, most=2, track=None, **how):
        mode = "netns" if os.geteuid() == 0 else "plain"
        options = ["PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE"]
        cluster = slurm.Cluster(pathlib.Path(folder) / "slurm", nodes=nodes, gpus=GPUS, mode=mode, services=1, track=track,
                                options=[*options, "PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF"])
        super().__init__(folder, cluster, cluster.folder, **how)
        self.nodes, self.service_node = cluster.nodes[:nodes], cluster.nodes[nodes]
        self.environment, self.most = cluster.environment, most
        self.can = {"slurmd", "slurmctld", "link", "power", "disk", "hosts"} if self.isolated else set()
        self.can |= {"as job"}
        self.hurried = {}  # job -> when it was told to start soon

    def launch(self):
        return {"slurm": {"partition": "main", "gres": f"gpu:{GPUS}", "max_nodes": len(self.nodes), "max_allocations": self.most,
                          "poll_seconds": 1, "signal_seconds": 20, "idle_seconds": 60, "lease_seconds": 4}}

    def power_off(self, node):
        self.cluster.kill_node(node)

    def power_on(self, node):
        self.cluster.start_node(node)

    def jobs(self):
        """Numbers of the jobs that wait or run."""
        with contextlib.suppress(subprocess.SubprocessError):
            return [job[0] for job in self.cluster.jobs("PENDING,RUNNING")]
        return []

    def orchestrators(self):
        """The jobs that run an orchestrator, or wait to: number, state."""
        with contextlib.suppress(subprocess.SubprocessError):
            return [job[:2] for job in self.cluster.jobs("PENDING,RUNNING") if job[2].startswith("sweep-run-")]
        return []

    def wait_for_orchestrators(self):
        """A process that ends once Slurm says that it has no such job."""
        loop = 'until out=$(squeue -h -t PD,R,CG -o %j) && ! echo "$out" | grep -q "^sweep-run-"; do sleep 1; done'
        return subprocess.Popen([*self.cluster.inside(), "sh", "-c", loop], env=self.environment, stdin=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)

    def preempt(self, node):
        """A job of more weight takes this node for a moment."""
        self.cluster.run("sbatch", "-p", "urgent", "-w", node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1",
                         check=False, timeout=20)

    def requeue(self, job):
        self.cluster.run("scontrol", "requeue", job, check=False, timeout=20)

    def start_soon(self):
        """Orchestrators that were put back into the queue need not wait Slurm's two minutes. Not told again at once: each time
        puts the start off."""
        for job, state in self.orchestrators():
            if state == "PENDING" and time.monotonic() - self.hurried.get(job, -60) > 20:
                self.hurried[job] = time.monotonic()
                self.cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+2", check=False, timeout=20)

    def scancel(self, job):
        self.cluster.run("scancel", job, check=False, timeout=20)

    def drain(self, node, state):
        self.cluster.run("scontrol", "update", f"nodename={node}", f"state={state}", "reason=test", check=False, timeout=20)

    def tend(self, spared):
        """Nodes back in service that Slurm keeps out by itself: a slurmctld that was killed forgets a `resume`, and one that
        was away too long for the end of a step calls that "Kill task failed". Not where a process of a sweep still stands."""
        self.start_soon()
        back = [node for node in self.cluster.drained() if node not in spared and not self.left_on(node)]
        told = self.tell() if back else ""
        for node in back:
            self.drain(node, "resume")
        return told

    def settle(self):
        """Every node idle and none drained, by force where need be; what was in the way, in Slurm's words."""
        def idle():
            return set(self.cluster.states().values()) == {"idle"}
        try:
            daemons.wait_for(idle, 30, "idle nodes", 0.2)
            return ""
        except TimeoutError:
            told = self.tell()
        for job in self.jobs():
            self.scancel(job)
        for node in self.cluster.drained():
            self.drain(node, "resume")
        daemons.wait_for(idle, 90, "idle nodes", 0.2)
        return told

    def tell(self):
        questions = [("sinfo", "-h", "-R", "-o", "%N %E"), ("squeue", "-h", "-o", "%i %j %T %r %N")]
        answers = [self.cluster.run(*words, check=False, timeout=20) for words in questions]
        return "; ".join([f"{self.cluster.states()}", *filter(None, answers)])


class SshFleet(Fleet):
    kind = "ssh"

    def __init__(self, folder, nodes=4, **how):
        folder = pathlib.Path(folder)
        folder.chmod(0o711)
        mark = folder / "sshd"
        self.environment = {**os.environ, daemons.MARK: str(mark)}
        mode = "netns" if os.geteuid() == 0 else "plain"
        cluster = sshd.Cluster(mark, nodes, self.environment, {daemons.MARK: mark}, mode)
        super().__init__(folder, cluster, mark, **how)
        self.nodes = cluster.hosts
        self.can = {"sshd", "link", "power", "disk", "hosts"} if self.isolated else {"sshd"}

    def launch(self):
        return {"ssh": {"hosts": [{"host": host, "slots": 1} for host in self.nodes], "config": str(self.cluster.config),
                        "directory": str(self.disk / "far"), "lease_seconds": 4, "silence_seconds": 8}}

    def power_off(self, node):
        self.cluster.stop_host(node)

    def power_on(self, node):
        self.cluster.start_host(node)

    def settle(self):
        return ""

    def tell(self):
        return ", ".join(self.nodes)


def name_of(words):
    """The program; sshd writes a sentence over its command line."""
    return os.path.basename(words[0].split()[0]).rstrip(":") if words and words[0].split() else ""


def host_name_of(pid):
    """In its own UTS namespace."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(["nsenter", f"--target={pid}", "--uts", "--", "hostname"], capture_output=True, text=True,
                              check=True).stdout.strip()
    return ""


def role_of(pid, words):
    """None: neither the orchestrator nor anything that it made run."""
    program = name_of(words)
    if program == "sweep":
        return "sweep"
    if program.startswith("sweep-agent") and "command" in words:
        return "rank"
    if program.startswith("sweep-agent"):
        return "bridge" if "bridge" in words else "node" if "--join" in words else "head"
    if any(word.endswith("/fleet_train.py") for word in words):
        return "trainer"
    if program not in ("fake_rank", "sweep-rank"):
        return None
    return "zygote" if "zygote" in words and proc.attempt_of(pid)[1] == 0 else "rank"
