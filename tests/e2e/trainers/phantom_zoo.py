"""Small training programs with what people use of PyTorch, one by name: phantom_zoo.py CASE. phantom_zoo_test.py rehearses them."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn

STEPS, CUDA = 4, "cuda"
RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def train(model, batch, loss_of=lambda out: out.float().square().mean(), optimizer=None, context=None):
    """The loop of all that need no other: forward, backward, update."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        with context() if context else torch.enable_grad():
            loss = loss_of(model(batch))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


def images(channels=16):
    return torch.randn(8, channels, 32, 32, device=CUDA)


def tokens(vocabulary=512):
    return torch.randint(vocabulary, (4, 64), device=CUDA)


def mlp(width=256):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).to(CUDA)


def rows(width=256):
    return torch.randn(64, width, device=CUDA)


class Function(nn.Module):
    """A linear layer, then the function under test."""

    def __init__(self, function, width=64):
        super().__init__()
        self.linear, self.function = nn.Linear(width, width), function

    def forward(self, x):
        return self.function(self.linear(x))


def of(function, width=64):
    train(Function(function, width).to(CUDA), torch.randn(width, width, device=CUDA))


def sgd():
    model = mlp()
    train(model, rows(), optimizer=torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))


def fused_adam():
    model = mlp()
    train(model, rows(), optimizer=torch.optim.AdamW(model.parameters(), fused=True))


def convolution():
    train(nn.Conv2d(16, 32, 3, padding=1).to(CUDA), images())


def channels_last():
    train(nn.Conv2d(16, 32, 3, padding=1).to(CUDA, torch.bfloat16, memory_format=torch.channels_last),
          images().to(torch.bfloat16, memory_format=torch.channels_last))


def resnet():
    block = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    train(block.to(CUDA), images())


def group_norm():
    train(nn.Sequential(nn.Conv2d(16, 16, 3), nn.GroupNorm(4, 16), nn.SiLU(), nn.Upsample(scale_factor=2, mode="bilinear")).to(CUDA), images())


def recurrent(kind):
    train(kind(64, 64, batch_first=True).to(CUDA), torch.randn(4, 16, 64, device=CUDA), loss_of=lambda out: out[0].square().mean())


def encoder():
    train(nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).to(CUDA), torch.randn(4, 32, 64, device=CUDA))


def embedding_bag():
    train(nn.EmbeddingBag(1000, 64).to(CUDA), torch.randint(1000, (16, 8), device=CUDA))


def ctc():
    targets = torch.ones(2, 10, dtype=torch.long, device=CUDA)
    train(nn.Linear(64, 20).to(CUDA), torch.randn(50, 2, 64, device=CUDA),
          loss_of=lambda out: nn.CTCLoss()(out.log_softmax(2), targets, torch.full((2,), 50), torch.full((2,), 10)))


def compiled():
    train(torch.compile(mlp()), rows())


def cuda_graph():
    model, x = mlp(), rows()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        train(model, x, optimizer=optimizer)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x).square().mean().backward()
    for _ in range(STEPS):
        graph.replay()
        optimizer.step()
    torch.cuda.synchronize()


def recomputed():
    from torch.utils.checkpoint import checkpoint
    model = mlp()
    train(lambda x: checkpoint(model, x, use_reentrant=False), rows(), optimizer=torch.optim.AdamW(model.parameters()))


def mixed_precision():
    model, scaler = mlp(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        with torch.autocast("cuda", torch.float16):
            loss = model(rows()).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def llama():
    import transformers
    small = transformers.LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
    return transformers.LlamaForCausalLM(small).to(CUDA, torch.bfloat16)


def loss_of_llama(model):
    ids = tokens()
    return lambda _: model(input_ids=ids, labels=ids).loss


def transformers_llama():
    model = llama()
    train(loss_of_llama(model), None, loss_of=lambda loss: loss, optimizer=torch.optim.AdamW(model.parameters()))


def lora():
    import peft
    model = peft.get_peft_model(llama(), peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    train(loss_of_llama(model), None, loss_of=lambda loss: loss,
          optimizer=torch.optim.AdamW([each for each in model.parameters() if each.requires_grad]))


def eight_bit():
    import bitsandbytes
    model = mlp()
    train(model, rows(), optimizer=bitsandbytes.optim.AdamW8bit(model.parameters()))


def accelerated():
    import accelerate
    accelerator = accelerate.Accelerator(mixed_precision="bf16")
    model, optimizer = accelerator.prepare(mlp(), torch.optim.AdamW(mlp().parameters()))
    for _ in range(STEPS):
        accelerator.backward(model(rows()).square().mean())
        optimizer.step()
        optimizer.zero_grad()


def group():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")


def ddp():
    group()
    train(nn.parallel.DistributedDataParallel(mlp()), rows())


def fsdp1():
    from torch.distributed.fsdp import FullyShardedDataParallel
    group()
    train(FullyShardedDataParallel(mlp(), use_orig_params=True), rows())


def fsdp2():
    from torch.distributed.fsdp import fully_shard
    group()
    train(fully_shard(mlp()), rows())


def tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    group()
    train(parallelize_module(mlp(), init_device_mesh("cuda", (WORLD,)), {"0": ColwiseParallel(), "2": RowwiseParallel()}), rows())


def pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    group()
    stage = PipelineStage(mlp(), RANK, WORLD, torch.device(CUDA, RANK))
    schedule = Schedule1F1B(stage, 4, loss_fn=lambda out, target: (out - target).square().mean())
    optimizer = torch.optim.AdamW(stage.submod.parameters())
    for _ in range(STEPS):
        schedule.step(rows()) if RANK == 0 else schedule.step(target=rows())
        optimizer.step()
        optimizer.zero_grad()


def experts():
    """Rows go to their experts and back by all-to-all in a group of their own, which the ranks make besides the world's."""
    group()
    own, model = dist.new_group(list(range(WORLD))), mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        sent, received = rows(), torch.empty(64, 256, device=CUDA)
        dist.all_to_all_single(received, sent, group=own)
        model(received).square().mean().backward()
        for each in model.parameters():
            dist.all_reduce(each.grad, group=own)
        optimizer.step()
        optimizer.zero_grad()


def deepspeed(stage):
    import deepspeed as ds
    model = mlp()
    config = {"train_micro_batch_size_per_gpu": 64, "bf16": {"enabled": True}, "zero_optimization": {"stage": stage},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
    engine, *_ = ds.initialize(model=model, model_parameters=model.parameters(), config=config)
    for _ in range(STEPS):
        engine.backward(engine(rows().bfloat16()).float().square().mean())
        engine.step()


def lightning():
    import lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = mlp()

        def training_step(self, batch, _):
            return self.net(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    data = torch.utils.data.DataLoader(torch.randn(64 * STEPS, 256), batch_size=64)
    with tempfile.TemporaryDirectory() as folder:
        pl.Trainer(max_epochs=1, devices=1, accelerator="gpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                   default_root_dir=folder).fit(Module(), data)


ALONE = {
    "sgd": sgd, "fused_adam": fused_adam, "convolution": convolution, "channels_last": channels_last, "resnet": resnet,
    "group_norm": group_norm, "lstm": lambda: recurrent(nn.LSTM), "gru": lambda: recurrent(nn.GRU), "encoder": encoder,
    "embedding_bag": embedding_bag, "ctc": ctc, "fft": lambda: of(lambda x: torch.fft.fft(x).abs()), "svd": lambda: of(torch.linalg.svdvals),
    "inverse": lambda: of(torch.linalg.inv), "sparse": lambda: of(lambda x: torch.sparse.mm(torch.eye(64, device=CUDA).to_sparse(), x)),
    "compiled": compiled, "cuda_graph": cuda_graph, "recomputed": recomputed, "mixed_precision": mixed_precision,
    "transformers": transformers_llama, "lora": lora, "eight_bit": eight_bit, "accelerate": accelerated, "lightning": lightning}
ON_TWO_RANKS = {
    "ddp": ddp, "fsdp1": fsdp1, "fsdp2": fsdp2, "tensor_parallel": tensor_parallel, "pipeline": pipeline, "experts": experts,
    "deepspeed1": lambda: deepspeed(1), "deepspeed2": lambda: deepspeed(2), "deepspeed3": lambda: deepspeed(3)}

if __name__ == "__main__":
    (ALONE | ON_TWO_RANKS)[sys.argv[1]]()
