"""A tiny language model trained by DeepSpeed: deepspeed_train.py CONFIG STEPS"""
import json
import pathlib
import sys
from typing import Any

import lean

lean.without("mlflow", "transformers")
if json.loads(pathlib.Path(sys.argv[1]).read_text())["zero_optimization"]["stage"] == 3:  # 1 and 2 compile
    lean.without_compiler()
    lean.with_nothing_in("deepspeed.runtime.zero.muon.muon_optimizer")  # it compiles
import deepspeed  # noqa: E402
import sweep_trial  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
# Compiled under a lock that stays when its owner is killed: all later runs wait for it.
operators: Any = sys.modules["deepspeed.comm.torch"]
operators.build_shm_op = lambda: None
deepspeed.init_distributed("gloo")
model = torch.nn.Sequential(torch.nn.Embedding(128, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 128))
engine, *_ = deepspeed.initialize(model=model, config=sys.argv[1], model_parameters=model.parameters())
watch = sweep_trial.watch(engine, None)
for _ in range(int(sys.argv[2]) * engine.gradient_accumulation_steps()):
    ids = torch.randint(0, 128, (engine.train_micro_batch_size_per_gpu(), 32))
    engine.backward(torch.nn.functional.cross_entropy(engine(ids).float().flatten(0, 1), ids.flatten()))
    last = engine.is_gradient_accumulation_boundary()
    if last and watch:
        watch.optimizer_begins()
    engine.step()
    if last and watch:
        watch.step_ends()
torch.distributed.destroy_process_group()
