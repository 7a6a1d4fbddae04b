"""torch_memory.py LAYOUT MICRO_BATCH LAYERS: peak bytes of Llama 3 8B with LAYERS layers under PyTorch's FSDP2 or tensor parallelism,
by torchrun under phantom GPUs (docs/phantom.md). LAYOUT: `fsdp` (bf16 copies, fp32 gradients and weights: as `zero: 3`,
`bf16_mixed`), `fsdp_full` (with each block recomputed), `tp` (as `tp`, `bf16`), `tp_sp`. SNAPSHOT=FILE in the environment keeps rank 0's
allocations at the peak, by size."""
import collections
import functools
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed._composable import checkpoint_activation
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from transformers import LlamaConfig, LlamaForCausalLM

SEQ_LEN = 4096


def model(layers, dtype):
    config = LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=layers, num_attention_heads=32,
                         num_key_value_heads=8, max_position_embeddings=SEQ_LEN, tie_word_embeddings=False, use_cache=False,
                         attn_implementation="sdpa", rope_theta=500000.0)
    with torch.device("meta"):
        return LlamaForCausalLM(config).to(dtype)


def shard(net, recompute):
    if recompute:
        for block in net.model.layers:
            checkpoint_activation.checkpoint(block)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in (net.model.embed_tokens, *net.model.layers, net.lm_head):
        fully_shard(block, mp_policy=policy)
    fully_shard(net, mp_policy=policy)


def split(net, mesh, sequence):
    rows = functools.partial(RowwiseParallel, output_layouts=Shard(1) if sequence else Replicate())
    plan = {"model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1) if sequence else Replicate()),
            "lm_head": ColwiseParallel(input_layouts=Shard(1) if sequence else Replicate(), output_layouts=Replicate())}
    for i in range(len(net.model.layers)):
        at = f"model.layers.{i}."
        plan |= {at + f"self_attn.{name}_proj": ColwiseParallel() for name in "qkv"}
        plan |= {at + "self_attn.o_proj": rows(), at + "mlp.gate_proj": ColwiseParallel(), at + "mlp.up_proj": ColwiseParallel(),
                 at + "mlp.down_proj": rows()}
        if sequence:
            whole = {"input_layouts": Shard(1), "desired_input_layouts": Replicate()}
            plan |= {at + "input_layernorm": SequenceParallel(), at + "post_attention_layernorm": SequenceParallel(),
                     at + "mlp": PrepareModuleInput(**whole),
                     at + "self_attn": PrepareModuleInput(input_kwarg_layouts={"hidden_states": Shard(1)},
                                                          desired_input_kwarg_layouts={"hidden_states": Replicate()})}
    if sequence:
        plan["model.norm"] = SequenceParallel()
    parallelize_module(net, mesh, plan)


def at_peak(trace):
    """Bytes that lived at the highest point of an allocator's trace, by size: [(bytes, count)]."""
    alive, now, peak, then = {}, 0, 0, {}
    for event in trace:
        if event["action"] == "alloc":
            alive[event["addr"]] = event
            now += event["size"]
            if now > peak:
                peak, then = now, dict(alive)
        elif event["action"] == "free_completed" and event["addr"] in alive:
            now -= alive.pop(event["addr"])["size"]

    def place(event):
        frames = [f"{frame['filename'].rsplit('/', 1)[-1]}:{frame['name']}" for frame in event.get("frames", [])]
        return " < ".join(frames[:4])

    counts = collections.Counter((event["size"], place(event)) for event in then.values())
    return sorted(((size * count, size, count, where) for (size, where), count in counts.items()), reverse=True)


def main():
    layout, micro_batch, layers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.backends.cuda.enable_cudnn_sdp(False)
    net = model(layers, torch.bfloat16 if layout.startswith("tp") else torch.float32)
    if layout.startswith("tp"):
        split(net, init_device_mesh("cuda", (dist.get_world_size(),)), layout == "tp_sp")
    else:
        shard(net, layout == "fsdp_full")
    net.to_empty(device="cuda")
    kinds = [[p for p in net.parameters() if isinstance(p, DTensor) == kind] for kind in (True, False)]
    optimizers = [torch.optim.AdamW(kind, lr=1e-4, fused=True) for kind in kinds if kind]  # one takes no mixture
    tokens = torch.zeros(micro_batch, SEQ_LEN, dtype=torch.long, device="cuda")
    positions = torch.arange(SEQ_LEN, device="cuda").expand(micro_batch, -1)  # of the whole sequence, split or not
    for step in range(3):
        if step == 2:
            torch.cuda.reset_peak_memory_stats()
            if "SNAPSHOT" in os.environ and rank == 0:
                torch.cuda.memory._record_memory_history(max_entries=200000, stacks="python")
        net(input_ids=tokens, labels=tokens, position_ids=positions).loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    torch.cuda.synchronize()
    if rank == 0:
        print(f"{layout} micro-batch {micro_batch}: {torch.cuda.max_memory_allocated() / 1e6:.0f} MB allocated, "
              f"{torch.cuda.max_memory_reserved() / 1e6:.0f} MB reserved", flush=True)
        if "SNAPSHOT" in os.environ:
            trace = torch.cuda.memory._snapshot()["device_traces"][0]
            with open(os.environ["SNAPSHOT"], "w") as file:
                file.writelines(f"{total / 1e6:.0f} MB: {count} x {size / 1e6:.1f} {where}\n" for total, size, count, where in at_peak(trace))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
