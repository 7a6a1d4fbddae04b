"""The pods of one Kubernetes Job on this machine, without Kubernetes: each container has its own network, host name, process ids and root
(this machine's, with what it writes kept apart), runs as an ordinary user without capabilities, in a chroot, where the kernel makes no user
namespaces. The manifest's ConfigMaps, claims, memory volumes and service names are there; what Kubernetes itself decides is not. Root only.
"""
import os
import pathlib
import signal
import subprocess
import zlib

import yaml
from cluster import networks

USER = "sweep"
SETUP = """set -e
folder=$1 name=$2 uid=$3; shift 3
hostname "$name"
mkdir -p "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
root=$folder/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
cp "$folder/passwd" "$folder/hosts" "$root/etc/"
while [ "$1" != -- ]; do mkdir -p "$root$2"; mount --bind "$1" "$root$2"; shift 2; done
shift
exec /usr/sbin/chroot "$root" setpriv --reuid="$uid" --regid="$uid" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"
"""


def documents(manifest):
    return [one for one in yaml.safe_load_all(pathlib.Path(manifest).read_text()) if one]


class Job:
    """The pods of the manifest's one Job; volumes lie under the folder and outlive them."""

    def __init__(self, folder, manifest, path):
        self.folder, self.path = pathlib.Path(folder).resolve(), path
        kinds = {(one["kind"], one["metadata"]["name"]): one for one in documents(manifest)}
        self.job = next(one for (kind, _), one in kinds.items() if kind == "Job")
        self.config = {name: one["data"] for (kind, name), one in kinds.items() if kind == "ConfigMap"}
        self.template = self.job["spec"]["template"]["spec"]
        name, self.count = self.job["metadata"]["name"], self.job["spec"].get("completions", 1)
        self.names = [f"{name}-{i}" for i in range(self.count)]
        self.stem = f"p{zlib.crc32(str(self.folder).encode()) % 46656:x}n"
        self.networks = networks.Networks(self.stem, [f"{self.stem}{i}" for i in range(self.count)])
        self.uid = self.template["securityContext"]["runAsUser"]
        self.logs: dict[int, pathlib.Path] = {}

    def secret(self, name):
        """The folder of a secret's files."""
        folder = self.folder / "secret" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _source(self, volume, pod):
        """The folder that stands for a volume: claims are shared by the pods, memory is the pod's own."""
        if "configMap" in volume:
            folder = self.folder / "config" / volume["configMap"]["name"]
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in self.config[volume["configMap"]["name"]].items():
                (folder / name).write_text(text)
            return folder
        if "secret" in volume:
            folder = self.secret(volume["secret"]["secretName"])
            for file in folder.iterdir():
                file.chmod(volume["secret"]["defaultMode"])
                os.chown(file, 0, self.uid)  # fsGroup
            return folder
        folder = self.folder / "claim" / volume["persistentVolumeClaim"]["claimName"] if "persistentVolumeClaim" in volume \
            else pod / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, self.uid, self.uid)
        folder.chmod(0o770)
        return folder

    def start(self, index=0):
        """A pod of this index, as new: another root and memory, the same claims. Its process."""
        pod = self.folder / f"pod{len(self.logs) + 1}"
        pod.mkdir(parents=True)
        (pod / "passwd").write_text(pathlib.Path("/etc/passwd").read_text() + f"{USER}:x:{self.uid}:{self.uid}::/tmp:/bin/sh\n")
        service = self.template.get("subdomain")
        (pod / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.networks.address(node)} {name}{f'.{service}' if service else ''} {name}\n"
            for node, name in zip(self.networks.nodes, self.names, strict=True)))
        container = self.template["containers"][0]
        sources = {volume["name"]: self._source(volume, pod) for volume in self.template["volumes"]}
        mounts = [word for mount in container["volumeMounts"] for word in (str(sources[mount["name"]]), mount["mountPath"])]
        environment = {"PATH": f"{self.path}:/usr/bin:/bin", "HOME": "/tmp", "JOB_COMPLETION_INDEX": str(index)}
        with open(pod / "log", "ab") as log:
            process = subprocess.Popen(
                [*self.networks.inside(self.networks.nodes[index]), "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child=KILL",
                 "--", "sh", "-c", SETUP, "sh", pod, self.names[index], str(self.uid), *mounts, "--", *container["command"]],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.logs[process.pid] = pod / "log"
        return process

    def log(self, pod):
        """What it printed."""
        return self.logs[pod.pid].read_text()

    def first_process(self, pod):
        """The pid, here, of the container's first process."""
        children = pathlib.Path(f"/proc/{pod.pid}/task/{pod.pid}/children").read_text().split()
        return int(children[0])

    def terminate(self, pod):
        """What a kubelet does first when a pod is evicted."""
        os.kill(self.first_process(pod), signal.SIGTERM)

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)
        self.networks.make()
        return self

    def __exit__(self, *_):
        for node in self.networks.nodes:
            for pid in self.networks.members(node):
                os.kill(pid, signal.SIGKILL)
        self.networks.remove()
