"""The one rank that a rehearsal starts of a large world (docs/rehearsal.md): PyTorch takes the peers, which are not there,
for mirrors of it. They come when it comes, with the same bytes; a store answers for them. Python runs this file as
`sitecustomize`, before the program's first line."""
import ctypes
import importlib.machinery
import importlib.util
import os
import sys

WORLD, RANK, RANKS_OF_NODE = (int(os.environ[name]) for name in ("WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"))
NO_VALUE = bytes(128)  # of a key that a peer would have set: an NCCL id, which phantoms take as any other
os.environ["TORCH_NCCL_RANKS_PER_ROOT"] = str(WORLD)  # else groups of more than 128 ranks wait for several roots


class PeersAnswers:
    """The part of a c10d store that programs use: counters stand at the world's size, waits are over, as if every peer were there."""

    values = {}
    timeout = None

    def set(self, key, value):
        self.values[key] = value if isinstance(value, bytes) else value.encode()

    def get(self, key):
        return self.values.get(key, NO_VALUE)

    def add(self, key, amount):
        self.values[key] = str(WORLD).encode()
        return WORLD

    def compare_set(self, key, expected, desired):
        self.values.setdefault(key, desired if isinstance(desired, bytes) else desired.encode())
        return self.values[key]

    def append(self, key, value):
        self.values[key] = self.values.get(key, b"") + (value if isinstance(value, bytes) else value.encode())

    def check(self, keys):
        return all(key in self.values for key in keys)

    def wait(self, keys, timeout=None):
        return None

    def delete_key(self, key):
        return self.values.pop(key, None) is not None

    def num_keys(self):
        return len(self.values)

    def set_timeout(self, timeout):
        self.timeout = timeout

    def has_extended_api(self):
        return False

    def multi_get(self, keys):
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        for key, value in zip(keys, values):
            self.set(key, value)

    def clone(self):
        return self


def answer_for_peers(rendezvous):
    """torch.distributed.rendezvous: whatever address a program names, it meets its peers at once."""
    store = type("PeersStore", (PeersAnswers, rendezvous.Store), {"timeout": rendezvous.default_pg_timeout})()

    def meet(url, rank=-1, world_size=-1, **more):
        yield store, RANK, WORLD

    for scheme in ("env", "tcp", "file"):
        rendezvous._rendezvous_handlers[scheme] = meet


def tell_groups(c10d):
    """torch.distributed.distributed_c10d: phantoms learn who is in a group and on how many nodes it lies. A group on Gloo, whose
    peers cannot be mirrored, is PyTorch's own fake one: what it gathers are copies of this rank's."""
    from torch._C._distributed_c10d import FakeProcessGroup

    make_group, split, phantom = c10d._new_process_group_helper, c10d.split_group, ctypes.CDLL(None)

    def tell(members):
        place = members.index(RANK) if RANK in members else -1
        phantom.sweep_phantom_mirror_group(len(members), place, len({rank // RANKS_OF_NODE for rank in members}))

    def make_and_tell(size, rank, members, *arguments, **options):
        tell(list(members) or list(range(WORLD)))
        return make_group(size, rank, members, *arguments, **options)

    def split_and_tell(parent_pg=None, split_ranks=None, *arguments, **options):
        ranks = c10d.get_process_group_ranks(parent_pg)
        groups = [[ranks[place] for place in sorted(group)] for group in split_ranks or []]
        tell(next((group for group in groups if RANK in group), groups[0] if groups else []))
        return split(parent_pg, split_ranks, *arguments, **options)

    class IsFake(type):
        def __instancecheck__(cls, group):
            return isinstance(group, FakeProcessGroup)

    class ProcessGroupGloo(metaclass=IsFake):
        def __new__(cls, store, rank, size, **options):
            return FakeProcessGroup._create_internal(rank, size)

    FakeProcessGroup._set_sequence_number_for_group = lambda group: None  # which PyTorch asks of Gloo, not of its fake
    c10d._new_process_group_helper, c10d.split_group = make_and_tell, split_and_tell
    c10d.ProcessGroupGloo = ProcessGroupGloo


CHANGES = {"torch.distributed.rendezvous": answer_for_peers, "torch.distributed.distributed_c10d": tell_groups}


class ChangedImports:
    """Finds the modules of CHANGES, and changes them when they have been executed."""

    def find_spec(self, name, path, target=None):
        if name not in CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def execute_and_change(module):
            execute(module)
            CHANGES[name](module)

        spec.loader.exec_module = execute_and_change
        return spec


def run_the_shadowed():
    """The sitecustomize that Python would have run."""
    here = os.path.dirname(os.path.abspath(__file__))
    elsewhere = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if hasattr(ctypes.CDLL(None), "sweep_phantom_mirror"):
    ctypes.CDLL(None).sweep_phantom_mirror(max(1, WORLD // RANKS_OF_NODE))
    sys.meta_path.insert(0, ChangedImports())
run_the_shadowed()
