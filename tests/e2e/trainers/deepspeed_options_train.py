"""deepspeed_options_train.py --deepspeed_config FILE --steps N, as DeepSpeed's own tutorial has it; without sweep."""
import argparse
import sys
from typing import Any

import lean

lean.without("mlflow", "transformers")
import deepspeed  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
# Compiled under a lock that stays when its owner is killed: all later runs wait for it.
operators: Any = sys.modules["deepspeed.comm.torch"]
operators.build_shm_op = lambda: None
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()
deepspeed.init_distributed("gloo")
model = torch.nn.Sequential(torch.nn.Embedding(128, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 128))
engine, *_ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
for _ in range(args.steps * engine.gradient_accumulation_steps()):
    ids = torch.randint(0, 128, (engine.train_micro_batch_size_per_gpu(), 32))
    engine.backward(torch.nn.functional.cross_entropy(engine(ids).float().flatten(0, 1), ids.flatten()))
    engine.step()
torch.distributed.destroy_process_group()
