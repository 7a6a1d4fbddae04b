"""A tiny language model that fails on request: struck_train.py ddp|lightning STEPS FAULT. FAULT, on the last rank at step 3: none,
oom, crash, hang (in a collective), leave (children in sessions of their own that ignore SIGTERM, and zombies, are left)."""
import os
import subprocess
import sys
import time

import sweep_trial
import torch

MODE, STEPS, FAULT = sys.argv[1], int(sys.argv[2]), sys.argv[3]
LAST = int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1
STUBBORN = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.fork() or os._exit(0); time.sleep(10000)"
torch.set_num_threads(1)


def fail(step):
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


def loss_of(net, ids):
    return torch.nn.functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten())


def train_ddp():
    torch.distributed.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.AdamW(net.parameters())
    sweep_trial.watch(net, optimizer)
    for step in range(STEPS):
        fail(step)
        time.sleep(0.2)  # long enough to be struck in the middle
        loss_of(net, torch.randint(0, 128, (2, 32))).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


def train_lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = model()

        def forward(self, ids):
            return self.net(ids)

        def training_step(self, batch, index):
            fail(index)
            time.sleep(0.2)
            return loss_of(self, batch)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    class Tokens(torch.utils.data.Dataset):
        def __len__(self):
            return 1000

        def __getitem__(self, index):
            return torch.randint(0, 128, (32,))

    trainer = lightning.Trainer(accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]), strategy="ddp", max_steps=STEPS, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, callbacks=[sweep_trial.lightning_callback()])
    trainer.fit(Module(), torch.utils.data.DataLoader(Tokens(), batch_size=2, num_workers=1, persistent_workers=True))


train_ddp() if MODE == "ddp" else train_lightning()
