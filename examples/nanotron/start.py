"""Starts a program once for each GPU of this node, as torchrun does, but imports PyTorch once: the ranks are forks.

    python start.py GPUS train.py ARGUMENTS     # MASTER_ADDR and MASTER_PORT are set, one node

With eight ranks on two cores a rehearsal then takes half of the time: most of it was eight imports."""
import os
import signal
import sys

import train  # noqa: F401 (and with it PyTorch and nanotron)

count, program = int(sys.argv[1]), sys.argv[2:]
ranks = []
for rank in range(count):
    child = os.fork()
    if child == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count), GROUP_RANK="0")
        import sweep_trial
        sys.exit(sweep_trial.main(program))
    ranks.append(child)
worst = 0
while ranks:
    child, status = os.wait()
    ranks.remove(child)
    code = os.waitstatus_to_exitcode(status)
    if code and not worst:  # the others wait for it in a collective
        worst = code if code > 0 else 128 - code
        for other in ranks:
            os.kill(other, signal.SIGTERM)
sys.exit(worst)
