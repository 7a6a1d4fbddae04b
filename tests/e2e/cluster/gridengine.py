#!/usr/bin/env python3
"""A real Grid Engine of one host on this machine: sge_qmaster and sge_execd with all state under one folder, in a network of their
own (root), since they listen on every address.

  with gridengine.Cluster(folder) as cluster:
      cluster.run("qstat")

By hand: gridengine.py up FOLDER, until the terminal's Ctrl-C; it prints how to run a command in it.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from cluster import daemons

SHARE, BINARIES = pathlib.Path("/usr/share/gridengine"), pathlib.Path("/usr/lib/gridengine")
HOST = "localhost"  # the cluster's name for this machine
QUEUE, ENVIRONMENT = "main.q", "smp"
BOOTSTRAP = """admin_user none
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {common};{qmaster}
binary_path {binaries}
qmaster_spool_dir {qmaster}
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
PARALLEL_ENVIRONMENT = """pe_name smp
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
qsort_args NONE
accounting_summary FALSE
"""
LIMITS = "rt cpu fsize data stack core rss vmem"
QUEUE_TEXT = """qname main.q
hostlist localhost
seq_no 0
load_thresholds NONE
suspend_thresholds NONE
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:00:05
processors UNDEFINED
qtype BATCH
ckpt_list NONE
pe_list smp
rerun FALSE
slots {slots}
tmpdir /tmp
shell /bin/bash
prolog NONE
epilog NONE
shell_start_mode posix_compliant
starter_method NONE
suspend_method NONE
resume_method NONE
terminate_method NONE
notify 00:00:20
owner_list NONE
user_lists NONE
xuser_lists NONE
subordinate_list NONE
complex_values NONE
projects NONE
xprojects NONE
calendar NONE
initial_state default
"""


def missing():
    """The programs that a cluster needs and this machine lacks."""
    out = [str(path) for path in (BINARIES / "sge_qmaster", BINARIES / "sge_execd", BINARIES / "spoolinit") if not path.exists()]
    out += [name for name in ("qsub", "qstat", "qconf", "unshare", "nsenter", "ip") if shutil.which(name) is None]
    return out + ([] if os.geteuid() == 0 else ["root"])


class Cluster(daemons.Cluster):
    def __init__(self, folder, slots=4):
        super().__init__()
        self.folder, self.slots = pathlib.Path(folder).resolve(), slots
        self.environment = {**os.environ, "SGE_ROOT": str(self.folder), "SGE_CELL": "default", "SGE_QMASTER_PORT": "6444",
                            "SGE_EXECD_PORT": "6445", daemons.MARK: str(self.folder)}
        self.network = None

    # --- the folder

    def _write_configuration(self):
        common, qmaster = self.folder / "default" / "common", self.folder / "spool" / "qmaster"
        for folder in (common, qmaster / "job_scripts", self.folder / "spool" / "execd", self.folder / "log"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "util").symlink_to(SHARE / "util")
        (common / "act_qmaster").write_text(HOST + "\n")
        (common / "host_aliases").write_text(f"{HOST} {os.uname().nodename}\n")
        (common / "bootstrap").write_text(BOOTSTRAP.format(common=common, qmaster=qmaster, binaries=BINARIES))
        text = (SHARE / "default-configuration").read_text().replace("/var/spool/gridengine", str(self.folder / "spool"))
        text = text.replace("flush_time=00:00:15", "flush_time=00:00:01").replace("00:00:40", "00:00:02")
        lines = [line.replace("1000", "0") if line.startswith("min_") else line for line in text.splitlines()]
        (self.folder / "configuration").write_text("\n".join(lines) + "\n")
        self._spool("spoolinit", "classic", "libspoolc", f"{common};{qmaster}", "init")
        self._spool("spooldefaults", "configuration", self.folder / "configuration")
        self._spool("spooldefaults", "complexes", SHARE / "util" / "resources" / "centry")
        self._spool("spooldefaults", "usersets", SHARE / "util" / "resources" / "usersets")
        self._spool("spooldefaults", "managers", "root")

    def _spool(self, program, *words):
        self._checked([BINARIES / program, *words])

    def _checked(self, words):
        done = subprocess.run([str(word) for word in words], env=self.environment, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    # --- daemons

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        self.network = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=self.environment)
        assert self.network.stdout.readline() == b"up\n", "no network namespace"
        try:
            self.start_master()
            self._set_up()
            self.start_host()
            daemons.wait_for(self._can_run, 60, f"a job can start: {self.tell()}", 0.2)
        except Exception:
            self.stop()
            raise
        return self

    def _daemon(self, name):
        self.start_daemon(name, [*self.inside(), str(BINARIES / name)], SGE_ND="1")

    def start_master(self):
        """sge_qmaster; also after it was killed."""
        self._daemon("sge_qmaster")
        daemons.wait_for(lambda: self._answers("qconf", "-sconf"), 60, f"sge_qmaster answers: {self.tell()}", 0.2)

    def start_host(self):
        self._daemon("sge_execd")

    def _set_up(self):
        self.run("qconf", "-as", HOST)
        scheduling = self.run("qconf", "-ssconf").splitlines()
        quick = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        self._configure("-Msconf", "\n".join(f"{line.split()[0]} {quick.get(line.split()[0], ' '.join(line.split()[1:]))}"
                                             for line in scheduling))
        self._configure("-Ap", PARALLEL_ENVIRONMENT)
        limits = "".join(f"{kind}_{name} INFINITY\n" for name in LIMITS.split() for kind in ("s", "h"))
        self._configure("-Aq", QUEUE_TEXT.format(slots=self.slots) + limits)

    def _configure(self, option, text):
        file = self.folder / ("qconf" + option)
        file.write_text(text + ("" if text.endswith("\n") else "\n"))
        self.run("qconf", option, str(file))

    def _answers(self, *words):
        with contextlib.suppress(subprocess.SubprocessError):
            self.run(*words, timeout=10)
            return True
        return False

    def _can_run(self):
        done = subprocess.run([*self.inside(), "qsub", "-terse", "-b", "y", "-sync", "y", "-o", "/dev/null", "-j", "y", "/bin/true"],
                              env=self.environment, capture_output=True, timeout=60)
        return done.returncode == 0

    def stop(self):
        """Ends every daemon, job and leftover."""
        for name in reversed(list(self.daemons)):
            self.daemons[name].stop()
        daemons.kill_marked(self.folder)
        if self.network:
            self.network.kill()
            self.network.wait()
            self.network.stdout.close()
        for name in ("spool", "default"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.daemons.clear()
        self.network = None

    # --- questions

    def inside(self):
        """The beginning of a command line in the cluster's network."""
        return ["nsenter", f"--net=/proc/{self.network.pid}/ns/net"]

    def jobs(self):
        """Number, name and state of every job in the queue or running."""
        lines = self.run("qstat", "-u", "*").splitlines()[2:]
        return [(line.split()[0], line.split()[2], line.split()[4]) for line in lines]

    def of_jobs(self):
        """Pids of what jobs have started, that still live."""
        own = {self.network.pid, *(daemon.process.pid for daemon in self.daemons.values())}
        return [pid for pid in daemons.marked(self.folder) if pid not in own]

    def logs(self):
        return [*super().logs(), *(self.folder / "spool").rglob("messages")]


def main():
    with Cluster(sys.argv[2]) as cluster:
        variables = " ".join(f"{name}={cluster.environment[name]}" for name in
                             ("SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT", "SGE_EXECD_PORT"))
        print(f"env {variables} {' '.join(cluster.inside())} qstat -f", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
