"""One network namespace per node, joined by a bridge inside the head's namespace; nothing of it in the machine's own. Root only."""
import os
import subprocess

from cluster import proc


def ip(*words, namespace=None):
    where = ["-n", namespace] if namespace else []
    subprocess.run(["ip", *where, *words], check=True, capture_output=True, text=True)


class Networks:
    def __init__(self, stem, nodes):
        self.head, self.nodes = f"{stem}head", list(nodes)
        self.prepare = ":"  # shell commands of a node, in its own mounts, before its service starts

    def address(self, node):
        return f"10.98.0.{11 + self.nodes.index(node)}"

    head_address = "10.98.0.1"

    def make(self):
        ip("netns", "add", self.head)
        ip("link", "set", "lo", "up", namespace=self.head)
        ip("link", "add", "br0", "type", "bridge", namespace=self.head)
        ip("addr", "add", f"{self.head_address}/24", "dev", "br0", namespace=self.head)
        ip("link", "set", "br0", "up", namespace=self.head)
        for node in self.nodes:
            ip("netns", "add", node)
            ip("link", "set", "lo", "up", namespace=node)
            ip("link", "add", f"v{node}", "type", "veth", "peer", "name", "eth0", "netns", node, namespace=self.head)
            ip("link", "set", f"v{node}", "master", "br0", namespace=self.head)
            ip("link", "set", f"v{node}", "up", namespace=self.head)
            ip("addr", "add", f"{self.address(node)}/24", "dev", "eth0", namespace=node)
            ip("link", "set", "eth0", "up", namespace=node)

    def remove(self):
        for name in [*self.nodes, self.head]:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def cut(self, node):
        ip("link", "set", f"v{node}", "down", namespace=self.head)

    def heal(self, node):
        ip("link", "set", f"v{node}", "up", namespace=self.head)

    def inside(self, name):
        """The beginning of a command line that runs in this namespace. nsenter, since `ip netns exec` hides /sys/fs/cgroup."""
        return ["nsenter", f"--net=/run/netns/{name}", "--"]

    def members(self, name):
        """Pids of every living process in this namespace, whatever it is and whoever started it; zombies are dead."""
        try:
            wanted = f"net:[{os.stat(f'/run/netns/{name}').st_ino}]"
        except OSError:
            return []
        return [pid for pid in proc.pids() if proc.link(pid, "ns/net") == wanted and proc.lives(pid)]

    def machine(self, name, hosts):
        """A node of its own: network, host name, process ids (killed whole with the outer process), its view of /etc/hosts;
        its one service is started again whenever it ends."""
        setup = f'hostname "$1" && mount --bind "$2" /etc/hosts && {self.prepare} && shift 2 && ' + 'while :; do "$@"; sleep 0.2; done'
        return [*self.inside(name), "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
                "--", "sh", "-c", setup, "sh", name, str(hosts)]
