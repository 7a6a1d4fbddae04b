"""The ranks that a rehearsal starts of a large world (docs/rehearsal.md), one for each pipeline stage: PyTorch takes each
peer that is not there for a mirror of its stage's started rank. They come when that one comes, with the same bytes; a
store that the started ranks share answers for them. Python runs this file as `sitecustomize`, before the program's first
line."""
import bisect
import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib.machinery
import importlib.util
import inspect
import itertools
import os
import re
import sys
import threading
import time

WORLD, RANK, RANKS_OF_NODE = (int(os.environ[name]) for name in ("WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"))
STARTED = sorted(int(rank) for rank in os.environ.get("SWEEP_STARTED_RANKS", str(RANK)).split(","))
NOBODY = -1  # of GroupRoles, which reads what is told here
ID_BYTES = 128  # of an NCCL id
NO_VALUE = bytes(ID_BYTES)  # of a key that a peer would have set
# ProcessGroupNCCL keeps a communicator's id under this key. A group's key ends in a number, and its first rank sets it; the key of a
# pair that sends messages ends in low:high, and the lower rank sets it.
ID_KEY = re.compile(r"/cuda//(?:\d+|(\d+):(\d+))$")
# Seconds to wait: for a key that a started rank sets; for a key that perhaps nobody sets; for all such keys together.
START_S, ANSWER_S, ANSWERS_S = 1800, 10, 60
COMPILE_S = 120  # for a graph that another rank compiles: while it tunes kernels, it may itself wait for a message of this one
os.environ["TORCH_NCCL_RANKS_PER_ROOT"] = str(WORLD)  # else groups of more than 128 ranks wait for several roots
# Inductor compiles in this process: its pool of workers, each of which loads PyTorch, brings nothing where every core has a rank.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
groups = {}  # name -> ranks, of those that this rank is in
own_groups = itertools.count()  # counts the groups whose ranks are all of this rank's stage


def stand_in(rank):
    """The started rank of its stage: stages are blocks of successive ranks."""
    return STARTED[max(0, bisect.bisect_right(STARTED, rank) - 1)]


def tell_phantom(members, id=None):
    """Who is in the group with this id, or in the one that is made next, who does whose part, and on how many nodes it lies."""
    members = list(members)
    places = {rank: place for place, rank in enumerate(members)}
    mine = RANK in places
    stand_ins = [places.get(stand_in(rank), NOBODY) for rank in members] if mine else [NOBODY] * len(members)
    nodes = len({rank // RANKS_OF_NODE for rank in members}) if mine else 1
    ctypes.CDLL(None).sweep_phantom_mirror_group(id, len(members), places.get(RANK, -1), nodes, (ctypes.c_int * len(members))(*stand_ins))


class PeersAnswers:
    """The part of a c10d store that programs use: counters stand at the world's size, waits are over, as if every peer were there.
    What started ranks set they share."""

    shared = None  # a store of PyTorch's
    timeout = None
    patience_s = ANSWERS_S

    def set(self, key, value):
        self.shared.set(key, value)
        if ID_KEY.search(key):
            tell_phantom(self.of_id(key), bytes(value))

    def get(self, key):
        if not ID_KEY.search(key):
            return self.shared.get(key) if self.has_come(key) else NO_VALUE
        members = self.of_id(key)
        if members[0] in STARTED:
            self.is_set(key, START_S)
            id = self.shared.get(key)
        else:
            id = hashlib.sha512(f"{key} {members[0]}".encode()).digest() * 2
        tell_phantom(members, id)
        return id

    def of_id(self, key):
        """The ranks of the communicator that this key is about; its first one sets the id."""
        members, pair = self.group(key), ID_KEY.search(key)
        return members if pair[1] is None else [members[int(place)] for place in pair.groups()]

    def group(self, key):
        """The group under whose name this key is kept."""
        return next((groups[part] for part in reversed(key.split("/")[:-1]) if part in groups), range(WORLD))

    def has_come(self, key):
        if all(rank in STARTED for rank in self.group(key)):
            return self.is_set(key, START_S)
        began = time.monotonic()
        found = self.is_set(key, min(ANSWER_S, self.patience_s))
        self.patience_s -= min(self.patience_s, time.monotonic() - began)
        return found

    def is_set(self, key, within_s):
        until = time.monotonic() + (within_s if len(STARTED) > 1 else 0)
        while not self.shared.check([key]):
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        return True

    def add(self, key, amount):
        self.shared.set(key, str(WORLD))
        return WORLD

    def compare_set(self, key, expected, desired):
        if not self.shared.check([key]):
            self.shared.set(key, desired)
        return self.shared.get(key)

    def append(self, key, value):
        self.shared.set(key, (self.shared.get(key) if self.shared.check([key]) else b"") + value)

    def check(self, keys):
        return self.shared.check(list(keys))

    def wait(self, keys, timeout=None):
        for key in keys:
            self.has_come(key)

    def delete_key(self, key):
        return self.shared.check([key]) and self.shared.delete_key(key)

    def num_keys(self):
        return self.shared.num_keys()

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
    from torch.distributed import FileStore, HashStore, PrefixStore

    shared = FileStore(os.environ["SWEEP_STARTED_STORE"]) if len(STARTED) > 1 else HashStore()
    store = type("PeersStore", (PeersAnswers, rendezvous.Store), {"timeout": rendezvous.default_pg_timeout, "shared": shared})()

    meetings = itertools.count()  # a program that begins again finds no keys of before

    def meet(url, rank=-1, world_size=-1, **more):
        yield PrefixStore(f"meeting {next(meetings)}", store), RANK, WORLD

    for scheme in ("env", "tcp", "file"):
        rendezvous._rendezvous_handlers[scheme] = meet


def tell_groups(c10d):
    """torch.distributed.distributed_c10d: phantoms learn who is in a group. A group on Gloo with ranks that are not started,
    which cannot be mirrored, is PyTorch's own fake one: what it gathers are copies of this rank's."""
    from torch._C._distributed_c10d import FakeProcessGroup

    make_group, split, gloo = c10d._new_process_group_helper, c10d.split_group, c10d.ProcessGroupGloo
    name_group, signature = getattr(c10d, "_process_group_name", None), inspect.signature(make_group)

    def name_by_place(ranks, *arguments, **options):
        """A group of ranks of one stage has the same name in every stage: programs are compiled with the names of their groups, and
        stages whose names are the same compile the same. Its keys in the shared store have the same names too: the only ones that
        are read there are ids of communicators, of which each stage's first rank sets its own."""
        name = name_group(ranks, *arguments, **options)  # called in any case: PyTorch counts groups in it
        own = RANK in ranks and all(stand_in(rank) == RANK for rank in ranks)
        return type(name)(f"stage.{next(own_groups)}") if own else name

    def make_and_tell(*arguments, **options):
        said = signature.bind(*arguments, **options).arguments
        members = list(said["global_ranks_in_group"]) or list(range(WORLD))
        if RANK in members:
            groups[str(said["group_name"])] = members
        tell_phantom(members)
        return make_group(*arguments, **options)

    def split_and_tell(parent_pg=None, split_ranks=None, *arguments, **options):
        ranks = c10d.get_process_group_ranks(parent_pg)
        parts = [[ranks[place] for place in sorted(part)] for part in split_ranks or []]
        mine = next((part for part in parts if RANK in part), parts[0] if parts else [])
        tell_phantom(mine)
        made = split(parent_pg, split_ranks, *arguments, **options)
        if RANK in mine:
            groups[str(made.group_name)] = mine
        return made

    class IsGloo(type):
        def __instancecheck__(cls, group):
            return isinstance(group, (FakeProcessGroup, gloo))

    class ProcessGroupGloo(metaclass=IsGloo):
        def __new__(cls, store, rank, size, **options):
            members = next(reversed(groups.values()))  # it is being made
            real = 1 < size == len(members) and all(rank in STARTED for rank in members)
            return gloo(store, rank, size, **options) if real else FakeProcessGroup._create_internal(rank, size)

    # What PyTorch asks of Gloo, and not of its fake.
    FakeProcessGroup._set_sequence_number_for_group = lambda group: None
    FakeProcessGroup._set_default_timeout = lambda group, timeout: None
    c10d._new_process_group_helper, c10d.split_group, c10d.ProcessGroupGloo = make_and_tell, split_and_tell, ProcessGroupGloo
    if name_group is not None:
        c10d._process_group_name = name_by_place


def compile_once(compile_fx):
    """torch._inductor.compile_fx: of started ranks that want the same graph, the first compiles it and the others wait for that, and take
    it from PyTorch's cache. A PyTorch without these functions compiles for each rank."""
    compile_graph, cache = getattr(compile_fx, "_compile_fx_inner", None), getattr(compile_fx, "FxGraphCache", None)
    load, thread = getattr(cache, "load_with_key", None), threading.local()
    if len(STARTED) == 1 or compile_graph is None or load is None:
        return
    compile_fx.config.autotune_local_cache = False  # each rank tunes, whatever was tuned on this machine before: what it counts is the same

    @functools.wraps(compile_graph)
    def compile_alone(*arguments, **options):
        with contextlib.ExitStack() as locks:
            locks.callback(setattr, thread, "locks", None)
            thread.locks = locks
            return compile_graph(*arguments, **options)

    def load_or_wait(key, *arguments, **options):
        found, locks = load(key, *arguments, **options), getattr(thread, "locks", None)
        if found[0] is not None or locks is None:
            return found
        lock = locks.enter_context(open(f"{os.environ['SWEEP_STARTED_STORE']}.{key}", "w"))
        if take(lock):  # the first: it keeps the lock until its graph is compiled
            locks.callback(fcntl.flock, lock, fcntl.LOCK_UN)  # a child that was forked meanwhile holds the same open file: closing is not enough
            return load(key, *arguments, **options)
        if wait_for(lock):
            fcntl.flock(lock, fcntl.LOCK_UN)  # a graph that was not kept is compiled by all who wait, side by side
        return load(key, *arguments, **options)

    compile_fx._compile_fx_inner, cache.load_with_key = compile_alone, staticmethod(load_or_wait)


def take(lock):
    """Whether nobody else had this file's lock."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for(lock):
    """Whether it came free in COMPILE_S."""
    until = time.monotonic() + COMPILE_S
    while not take(lock):
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True


def name_whole_graphs(codecache):
    """torch._inductor.codecache: it has no key for graphs of recomputed layers, whose inputs are states of random numbers."""
    cacheable = getattr(codecache.config, "unsafe_marked_cacheable_functions", None)
    if len(STARTED) == 1 or cacheable is None or not hasattr(codecache, "FxGraphCachePickler"):
        return
    import torch

    class KeyOfGraph(codecache.FxGraphCachePickler):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.dispatch_table[torch.Generator] = lambda generator: (str, (str(generator.device),))

    codecache.FxGraphCachePickler = KeyOfGraph
    cacheable["torch.ops.higher_order.graphsafe_run_with_rng_state"] = torch.__version__


def become_the_rank(launcher):
    """torch.distributed.run: a launcher that starts ranks by it, such as `accelerate launch`, becomes the rank that it stands for."""

    def run(arguments):
        _, program, words = launcher.config_from_args(arguments)
        sys.stdout.flush()
        os.execvp(program, [program, *words])

    launcher.run = run


def print_of_the_last_rank(utilities):
    """Megatron-LM prints each step's line on the world's last rank: here on the rank that stands for it."""
    utilities.is_last_rank = lambda: stand_in(WORLD - 1) == RANK


CHANGES = {
    "torch.distributed.rendezvous": answer_for_peers,
    "torch.distributed.distributed_c10d": tell_groups,
    "torch.distributed.run": become_the_rank,
    "torch._inductor.codecache": name_whole_graphs,
    "torch._inductor.compile_fx": compile_once,
    "megatron.training.utils": print_of_the_last_rank,  # its module of before 2026
    "megatron.training.utils.common_utils": print_of_the_last_rank,
}


class ChangedImports:
    """Finds the modules of CHANGES, and changes them when they have been executed."""

    def find_spec(self, name, path, target=None):
        if name not in CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None:
            return None
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
