"""Starts Megatron-LM once for each GPU of this node, as torchrun does, but imports PyTorch once: the ranks are forks.

    MEGATRON=/path/to/Megatron-LM python start.py GPUS ARGUMENTS     # MASTER_ADDR and MASTER_PORT are set, one node"""
import os
import signal
import sys
import typing

import typing_extensions

typing.override = getattr(typing, "override", typing_extensions.override)  # before Python 3.12
sys.path.insert(0, os.environ["MEGATRON"])
import sweep_trial  # noqa: E402
import torch._dynamo  # noqa: E402, F401
import torch.distributed  # noqa: E402, F401  (Megatron-LM itself uses the GPU when it is imported)

count, words = int(sys.argv[1]), sys.argv[2:]
ranks = []
for rank in range(count):
    child = os.fork()
    if child == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count), GROUP_RANK="0")
        sys.exit(sweep_trial.main([os.environ["MEGATRON"] + "/pretrain_gpt.py", *words]))
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
