"""A tiny language model that fails on request: struck_train.py ddp|fsdp2|deepspeed|huggingface|lightning STEPS FAULT NUMBER. NUMBER makes
configurations: the micro-batch, and DeepSpeed's ZeRO stage. FAULT, on the last rank at step 3: none, oom, crash, hang (in a collective),
leave (children in sessions of their own that ignore SIGTERM, and zombies, are left)."""
import os
import subprocess
import sys
import time

import lean
import sweep_trial
import torch

MODE, STEPS, FAULT, NUMBER = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
MICRO_BATCH, ZERO_STAGE = 1 + NUMBER % 4, 1 + NUMBER % 3
LAST = int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1
STUBBORN = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.fork() or os._exit(0); time.sleep(10000)"
torch.set_num_threads(1)


def before(step):
    time.sleep(0.2)  # long enough to be struck in the middle
    if step != 3 or not LAST or FAULT == "none":
        return
    if FAULT == "oom":
        raise MemoryError("as much as there is")
    if FAULT == "crash":
        raise ValueError("a fault of the script")
    if FAULT == "hang":
        time.sleep(10_000)  # the other ranks wait in a collective
    subprocess.Popen(["setsid", "sleep", "10000"])
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", STUBBORN], start_new_session=True)  # the child of a fork is left alone, and the parent a zombie


def model():
    return torch.nn.Sequential(torch.nn.Embedding(128, 32), torch.nn.Linear(32, 128))


def ids_of_a_batch():
    return torch.randint(0, 128, (MICRO_BATCH, 32))


def loss_of(net, ids):
    return torch.nn.functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten())


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.randint(0, 128, (32,))


def train_torch():
    if MODE == "ddp":
        lean.without_compiler()
    torch.distributed.init_process_group("gloo")
    net = model()
    if MODE == "ddp":
        net = torch.nn.parallel.DistributedDataParallel(net)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        fully_shard(net, mesh=init_device_mesh("cpu", (torch.distributed.get_world_size(),)))
    optimizer = torch.optim.AdamW(net.parameters())
    sweep_trial.watch(net, optimizer)
    for step in range(STEPS):
        before(step)
        loss_of(net, ids_of_a_batch()).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


def train_deepspeed():
    import deepspeed

    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # compiled under a lock that stays when its owner is killed: all later runs wait for it
    deepspeed.init_distributed("gloo")
    net = model()
    settings = {"train_micro_batch_size_per_gpu": MICRO_BATCH, "zero_optimization": {"stage": ZERO_STAGE},
                "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}}
    engine, *_ = deepspeed.initialize(model=net, config=settings, model_parameters=net.parameters())
    watch = sweep_trial.watch(engine, None)
    for step in range(STEPS):
        before(step)
        engine.backward(loss_of(engine, ids_of_a_batch()))
        watch.optimizer_begins()
        engine.step()
        watch.step_ends()
    torch.distributed.destroy_process_group()


def train_huggingface():
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

    class Labelled(Tokens):
        def __getitem__(self, index):
            ids = super().__getitem__(index)
            return {"input_ids": ids, "labels": ids}

    class Struck(TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            before(state.global_step)

    llama = LlamaForCausalLM(LlamaConfig(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                                         num_attention_heads=2, num_key_value_heads=2))
    settings = TrainingArguments("out", max_steps=STEPS, per_device_train_batch_size=MICRO_BATCH, report_to=[], save_strategy="no",
                                 use_cpu=True, disable_tqdm=True, logging_steps=1000, dataloader_num_workers=1)
    Trainer(llama, settings, train_dataset=Labelled(), callbacks=[sweep_trial.huggingface_callback(), Struck()]).train()


def train_lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = model()

        def forward(self, ids):
            return self.net(ids)

        def training_step(self, batch, index):
            before(index)
            return loss_of(self, batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    trainer = lightning.Trainer(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp", max_steps=STEPS, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, callbacks=[sweep_trial.lightning_callback()])
    trainer.fit(Module(), torch.utils.data.DataLoader(Tokens(), batch_size=MICRO_BATCH, num_workers=1, persistent_workers=True))


{"ddp": train_torch, "fsdp2": train_torch, "deepspeed": train_deepspeed, "huggingface": train_huggingface, "lightning": train_lightning}[MODE]()
