#!/usr/bin/env python3
"""A torchrun of one node whose ranks are forks of it, so that PyTorch is imported once for all of them: torchrun.py [OPTIONS] [-m] SCRIPT ...

As under torchrun, each rank is a child of the launcher in a session of its own. When a rank fails, or the launcher gets SIGTERM or SIGINT,
the others get SIGTERM and 30 s later SIGKILL, and it exits with 1. Ranks have the words of the launcher, and are called "rank" in
/proc/PID/comm. Without --master-port, as a person types it, it becomes the genuine torchrun."""
import argparse
import contextlib
import gc
import importlib
import os
import pathlib
import runpy
import signal
import sys

import lean

PATIENCE = 30  # seconds from SIGTERM to SIGKILL


def options():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--nproc-per-node", type=int, required=True)
    parser.add_argument("--master-addr", default="127.0.0.1")
    parser.add_argument("--master-port", required=True)
    for one in ("--nnodes", "--node-rank", "--max-restarts"):
        parser.add_argument(one)
    parser.add_argument("-m", dest="module", action="store_true")
    parser.add_argument("script")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    return parser.parse_args()


def import_for_all(given):
    """What the script imports of PyTorch. Its compiler, which the first optimizer imports, only for FSDP2, which needs it."""
    script = next(word for word in (given.script, *given.words) if word.endswith(".py"))
    lines = pathlib.Path(script).read_text().splitlines()
    modules = {line.split()[1].rstrip(",") for line in lines if line.startswith(("import torch", "from torch"))}
    gc.disable()
    for module in sorted({"torch.nn.parallel", *modules}):
        importlib.import_module(module)
    if "torch.distributed.fsdp" not in modules:
        lean.without_compiler()
    gc.enable()
    gc.freeze()  # no rank looks through all of that for garbage, which takes 0.7 s when it ends


def fork(given, rank):
    """The process of a rank, in the launcher; in that process it runs the script, and returns None."""
    if (pid := os.fork()) != 0:
        return pid
    os.setsid()
    pathlib.Path("/proc/self/comm").write_text("rank")
    world = str(given.nproc_per_node)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", WORLD_SIZE=world, LOCAL_WORLD_SIZE=world,
                      MASTER_ADDR=given.master_addr, MASTER_PORT=given.master_port)
    sys.argv = [given.script, *given.words]
    sys.path[0] = os.getcwd() if given.module else os.path.dirname(os.path.abspath(given.script))
    if given.module:
        runpy.run_module(given.script, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(given.script, run_name="__main__")
    return None


def launch(given):
    ranks, code = [], 0
    for rank in range(given.nproc_per_node):
        if (pid := fork(given, rank)) is None:
            return 0
        ranks.append(pid)

    def end(number, _=None):
        nonlocal code
        code = 1
        for each in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each, signal.SIGKILL if number == signal.SIGALRM else signal.SIGTERM)
        signal.alarm(PATIENCE)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, end)
    while ranks:
        pid, status = os.wait()
        ranks.remove(pid)
        if status != 0 and code == 0:
            end(signal.SIGTERM)
    return code


if __name__ == "__main__":
    if "--master-port" not in sys.argv:
        os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", *sys.argv[1:]])
    options_given = options()
    import_for_all(options_given)
    sys.exit(launch(options_given))
