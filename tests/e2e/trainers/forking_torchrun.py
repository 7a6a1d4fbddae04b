"""torchrun for the ranks of one node: they are forked from one process that has imported what the script imports, which takes 3 to 5 s of CPU
time each. The first that fails ends all.

    forking_torchrun.py --nproc-per-node N --nnodes 1 --master-port PORT SCRIPT [WORD...]"""
import argparse
import gc
import importlib
import os
import pathlib
import runpy
import signal
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--nproc-per-node", type=int)
parser.add_argument("--nnodes", type=int, choices=[1])
parser.add_argument("--master-port")
parser.add_argument("script", type=pathlib.Path)
parser.add_argument("words", nargs=argparse.REMAINDER)
options = parser.parse_args()

gc.disable()
for line in options.script.read_text().splitlines():
    if line.startswith(("import torch", "from torch")):
        importlib.import_module(line.split()[1].rstrip(","))
gc.freeze()  # no rank looks through all of that for garbage
gc.enable()
world, ranks = options.nproc_per_node, {}
for rank in range(world):
    pid = os.fork()
    if pid == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), GROUP_RANK="0", WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=options.master_port)
        sys.path[0] = str(options.script.parent)
        sys.argv = [str(options.script), *options.words]
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    ranks[pid] = rank
while ranks:
    pid, status = os.wait()
    del ranks[pid]
    if status != 0:
        for other in ranks:
            os.kill(other, signal.SIGKILL)
        sys.exit(1)
