"""The faults of things taken away while a sweep runs on a fleet (tests/e2e/cluster/fleet.py): each fault strikes once and says what it
did, or None where nothing was there to be struck; what has to be given back goes to Strikes.later."""
import signal
import time

from cluster import proc
from cluster.fleet import host_name_of, signal_all

FOREVER = None


class Strikes:
    """Which faults were made, what is still to be given back, and which trials they excuse."""

    def __init__(self, fleet, dice):
        self.fleet, self.dice = fleet, dice
        self.owed = []      # (when, what, give back)
        self.struck = []    # names
        self.attempts = set()  # whose ranks were struck: their verdict may be any
        self.windows = []   # (from, to) in which nothing could be written: likewise
        self.sweep, self.host = None, None  # target of the fault, and the login host that it was started on
        self.helpers = []   # further `resume`s: they watch, or have taken over

    def later(self, seconds, what, give_back):
        self.owed.append((time.monotonic() + seconds, what, give_back))

    def give_back(self, everything=False):
        due = [each for each in self.owed if everything or each[0] <= time.monotonic()]
        self.owed = [each for each in self.owed if each not in due]
        for _, _, action in sorted(due, key=lambda each: each[0]):
            action()
        if everything:
            self.fleet.thaw()

    def pick(self, pids, excuse=False):
        if not pids:
            return None
        pid = self.dice.choice(sorted(pids))
        if excuse:
            self.attempts.add(proc.attempt_of(pid)[1])
        return pid

    def kill(self, pids, **how):
        pid = self.pick(pids, **how)
        return pid if pid and signal_all([pid], signal.SIGKILL) else None

    def freeze(self, pids, longest, **how):
        """SIGSTOP, and SIGCONT after at most so many seconds; FOREVER: whoever misses it must end it."""
        pid = self.pick(pids, **how)
        if not pid or not signal_all([pid], signal.SIGSTOP):
            return None
        if longest is not FOREVER:
            self.later(self.dice.uniform(0.2, longest), f"pid {pid} goes on", lambda: signal_all([pid], signal.SIGCONT))
        return pid

    def excused(self, sweep):
        """seq_len of the trials that a fault may have ended in another way than their script."""
        spans = sweep.rows("select t.seq_len, a.id, coalesce(a.started_unix_ns, a.posted_unix_ns) / 1e9, a.ended_unix_ns / 1e9 "
                           "from attempt a join plan_entry p on p.key = a.entry join trial t on t.key = p.trial")
        return {length for length, attempt, began, ended in spans if attempt in self.attempts
                or any(began <= to and (ended is None or ended >= begin) for begin, to in self.windows)}


def roles(strikes, name):
    return strikes.fleet.roles().get(name, [])


def kill_role(role, excuse=False):
    return lambda s: s.kill(roles(s, role), excuse=excuse)


def freeze_role(role, longest, excuse=False):
    return lambda s: s.freeze(roles(s, role), longest, excuse=excuse)


def kill_service(name, on_head=False):
    def strike(s):
        where = s.fleet.cluster.networks.head if on_head else s.dice.choice(s.fleet.nodes)
        return s.kill(s.fleet.service(name, where))
    return strike


def freeze_service(name, longest, on_head=False):
    def strike(s):
        where = s.fleet.cluster.networks.head if on_head else s.dice.choice(s.fleet.nodes)
        return s.freeze(s.fleet.service(name, where), longest)
    return strike


def in_order(s):
    """A node that is on and within reach."""
    return s.dice.choice([node for node in s.fleet.nodes if not any(node in what for _, what, _ in s.owed)] or [None])


def link_down(s):
    node = in_order(s)
    if node is None:
        return None
    s.fleet.cut_link(node)
    s.later(s.dice.uniform(0.5, 8), f"the link of {node} is up", lambda: s.fleet.heal_link(node))
    return node


def power_off(s):
    node = in_order(s)
    if node is None:
        return None
    s.fleet.power_off(node)
    s.later(s.dice.uniform(0.5, 10), f"{node} is on", lambda: s.fleet.power_on(node))
    return node


def disk_full(s):
    if any("disk" in what for _, what, _ in s.owed):
        return None
    began = time.time()
    s.fleet.fill_disk()

    def empty():
        s.fleet.empty_disk()
        s.windows.append((began, time.time() + 1))
    s.later(s.dice.uniform(0.3, 3), "the disk has room", empty)
    return "spools"


def cut_connections(s):
    host = s.dice.choice(s.fleet.nodes)
    return host if host in s.fleet.cluster.daemons and s.fleet.cluster.cut(host) else None


def scancel(s):
    jobs = s.fleet.jobs()
    if not jobs:
        return None
    job = s.dice.choice(jobs)
    s.fleet.scancel(job)
    return job


def drain(s):
    node = s.dice.choice(s.fleet.nodes)
    s.fleet.drain(node, "drain")
    s.later(s.dice.uniform(0.5, 6), f"{node} is no longer drained", lambda: s.fleet.drain(node, "resume"))
    return node


def living_holder(s):
    """(host, pid on this machine, its Slurm job or 0) of the orchestrator; None: there is none, or it is a watcher's turn."""
    found = s.sweep.holder()
    return found if found and (found[2] or found[1] in roles(s, "sweep")) else None


def elsewhere(s):
    """A login host that nothing of the sweep's orchestrator was started on."""
    return s.dice.choice([host for host in s.fleet.hosts if host != s.host])


def resume_elsewhere(s):
    """A second `resume` on another host: it watches, and takes over only what is known to be gone."""
    s.helpers = [each for each in s.helpers if each.poll() is None]
    if len(s.helpers) >= 2 or not living_holder(s):
        return None
    host = elsewhere(s)
    s.helpers.append(s.sweep.start(host=host))
    return host


def host_lost(s):
    """The login host goes with all that runs on it; the next `resume` runs on another one."""
    holder = living_holder(s)
    if not holder or holder[0] not in s.fleet.hosts:
        return None
    with_it = [pid for pid in roles(s, "sweep") if host_name_of(pid) == holder[0]]
    signal_all(with_it, signal.SIGKILL)
    if s.host == holder[0]:
        s.host = elsewhere(s)
    return f"{holder[0]} with {len(with_it)} processes"


def robbed(s):
    """The orchestrator stands still for longer than the silence limit, a person takes the sweep over on another host, and then it
    wakes up: it must stop by itself and cancel nothing."""
    holder = living_holder(s)
    if not holder or holder[2] or any("wakes up" in what for _, what, _ in s.owed):
        return None
    if not signal_all([holder[1]], signal.SIGSTOP):
        return None
    host = s.host = next(each for each in s.fleet.hosts if each != holder[0])
    s.helpers.append(s.sweep.start("--take-over", host=host))
    s.later(s.dice.uniform(66, 80), f"pid {holder[1]} wakes up", lambda: signal_all([holder[1]], signal.SIGCONT))
    return f"{holder[1]} on {holder[0]}, by {host}"


def of_job(strike):
    """On the Slurm job that runs the orchestrator."""
    def on_it(s):
        holder = living_holder(s)
        if not holder or not holder[2] or str(holder[2]) not in [job for job, state in s.fleet.orchestrators() if state == "RUNNING"]:
            return None
        strike(s, str(holder[2]))
        s.later(s.dice.uniform(3, 6), "a waiting orchestrator starts", s.fleet.start_soon)
        return f"job {holder[2]}"
    return on_it


def node_of_job_lost(s, _):
    s.fleet.power_off(s.fleet.service_node)
    s.later(s.dice.uniform(1, 12), f"{s.fleet.service_node} is on", lambda: s.fleet.power_on(s.fleet.service_node))


# name -> (what the fleet must be able to do, strike)
EVERYWHERE = {
    "kill sweep": (None, kill_role("sweep")), "freeze sweep": (None, freeze_role("sweep", 4)),
    "kill head": (None, kill_role("head")), "freeze head": (None, freeze_role("head", 8)),
    "kill node": (None, kill_role("node")), "freeze node": (None, freeze_role("node", 8)),
    "freeze node for good": (None, freeze_role("node", FOREVER)),
    "kill zygote": (None, kill_role("zygote")), "freeze zygote": (None, freeze_role("zygote", 3)),
    "freeze zygote for good": (None, freeze_role("zygote", FOREVER)),
    "kill rank": (None, kill_role("rank", True)), "freeze rank": (None, freeze_role("rank", 2, True)),
    "freeze rank for good": (None, freeze_role("rank", FOREVER, True)),
    "kill trainer": ("commands", kill_role("trainer", True)), "freeze trainer": ("commands", freeze_role("trainer", 2, True)),
    "freeze trainer for good": ("commands", freeze_role("trainer", FOREVER, True)),
    "resume elsewhere": ("hosts", resume_elsewhere), "login host lost": ("hosts", host_lost), "robbed": ("hosts", robbed),
    "link down": ("link", link_down), "power off": ("power", power_off), "disk full": ("disk", disk_full),
}
OF_KIND = {
    "slurm": {"kill slurmd": ("slurmd", kill_service("slurmd")), "freeze slurmd": ("slurmd", freeze_service("slurmd", 6)),
              "kill slurmctld": ("slurmctld", kill_service("slurmctld", True)),
              "freeze slurmctld": ("slurmctld", freeze_service("slurmctld", 6, True)),
              "scancel": (None, scancel), "drain": (None, drain),
              "scancel orchestrator": ("as job", of_job(lambda s, job: s.fleet.scancel(job))),
              "requeue orchestrator": ("as job", of_job(lambda s, job: s.fleet.requeue(job))),
              "preempt orchestrator": ("as job", of_job(lambda s, job: s.fleet.preempt(s.fleet.service_node))),
              "orchestrator's node lost": ("power", of_job(node_of_job_lost))},
    "ssh": {"cut connections": ("sshd", cut_connections), "kill bridge": (None, kill_role("bridge")),
            "freeze bridge": (None, freeze_role("bridge", 6))},
}


def faults_of(fleet):
    return {name: strike for name, (needs, strike) in {**EVERYWHERE, **OF_KIND[fleet.kind]}.items()
            if needs is None or needs in fleet.can}


def ranks_by_attempt(fleet):
    """attempt -> pids of its ranks that are alive and not stopped."""
    found = {}
    for pid in fleet.roles().get("rank", []):
        number = proc.attempt_of(pid)[1]
        if number and proc.stat(pid)[0] not in "TZX":
            found.setdefault(number, []).append(pid)
    return found
