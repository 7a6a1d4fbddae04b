"""Accounting for a test cluster (slurm.py): a mariadbd of its own that only its socket reaches, and slurmdbd on loopback."""
import getpass
import pathlib
import shutil
import socket

PROGRAMS = ["mariadbd", "slurmdbd"]


class Accounting:
    """The settings of the two; all their state lies below the cluster's folder. The cluster's munged must run."""

    def __init__(self, cluster_folder):
        self.cluster_folder = pathlib.Path(cluster_folder)
        self.folder = self.cluster_folder / "accounting"
        self.munge = self.cluster_folder / "munge" / "sock"
        self.port = 0

    def options(self, port):
        """Lines of slurm.conf."""
        return ["AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
                f"AccountingStoragePort={port}", f"AccountingStoragePass={self.munge}"]

    def environment(self):
        return {"MYSQL_UNIX_PORT": str(self.folder / "sock")}  # how slurmdbd finds its database

    def write_configuration(self, port):
        self.port = port
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        path = self.cluster_folder / "slurmdbd.conf"  # beside slurm.conf, where slurmdbd looks for it
        path.write_text("\n".join([
            "AuthType=auth/munge", f"AuthInfo=socket={self.munge}", "DbdHost=localhost", "DbdAddr=127.0.0.1", f"DbdPort={port}",
            f"SlurmUser={getpass.getuser()}", f"PidFile={self.cluster_folder}/run/slurmdbd.pid",
            f"LogFile={self.cluster_folder}/log/slurmdbd.log", "StorageType=accounting_storage/mysql", "StorageHost=localhost",
            f"StorageUser={getpass.getuser()}", "StorageLoc=slurm_acct_db"]) + "\n")
        path.chmod(0o600)  # it refuses one that others may read

    def database_command(self):
        return [shutil.which("mariadbd", path="/usr/sbin:/usr/bin"), "--no-defaults", f"--user={getpass.getuser()}",
                "--skip-networking", "--skip-grant-tables", f"--socket={self.folder}/sock", f"--datadir={self.folder}/data",
                f"--pid-file={self.folder}/pid", "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=32M"]

    def database_answers(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.folder / "sock")) == 0

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def states(cluster, job_name):
    """sacct's answer about the jobs of this name."""
    return cluster.run("sacct", "--noheader", "--parsable2", "--allocations", f"--name={job_name}", "--format=State").split("\n")
