"""torch_memory.py CASE: peak bytes of a training step under PyTorch's own FSDP2, DDP or tensor parallelism, by torchrun under phantom
GPUs (docs/phantom.md). CASE is JSON: {"model": "llama" | "gpt2", "layers", "seq_len", "sequences", "layout": "fsdp" | "ddp" | "tp" | "tp_sp",
"mixed": fp32 weights that compute in bf16, "reshard", "recompute"}. Rank 0 prints one JSON object: allocated and reserved peak, what
lasts from step to step, and what else lived at the peak, by size and by the place that asked for it."""
import collections
import json
import os
import sys

import torch
import torch.distributed as dist
import transformers.masking_utils
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
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

CASE = {"model": "llama", "layers": 2, "seq_len": 3840, "sequences": 1, "layout": "fsdp", "mixed": True, "reshard": True, "recompute": False}
CASE |= json.loads(sys.argv[1])
# transformers looks for packed sequences in the values of the positions. Those are zeros here, and 0, 1, 2... on a GPU, where it finds none
# and makes no mask.
transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None


def model():
    if CASE["model"] == "gpt2":
        kind, config = GPT2LMHeadModel, GPT2Config(
            vocab_size=50257, n_positions=1024, n_embd=1600, n_layer=CASE["layers"], n_head=25, use_cache=False, attn_implementation="sdpa",
            resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    else:
        kind, config = LlamaForCausalLM, LlamaConfig(
            vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=CASE["layers"], num_attention_heads=32,
            num_key_value_heads=8, max_position_embeddings=8192, tie_word_embeddings=False, use_cache=False, attn_implementation="sdpa")
    with torch.device("meta"):
        return kind(config).to(torch.float32 if CASE["mixed"] else torch.bfloat16)


def blocks_of(net):
    return net.transformer.h if CASE["model"] == "gpt2" else net.model.layers


def shard(net):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if CASE["mixed"] else MixedPrecisionPolicy()
    tables = [] if CASE["model"] == "gpt2" else [net.model.embed_tokens, net.lm_head]  # GPT-2's one table is the root's
    for part in (*blocks_of(net), *tables, net):
        fully_shard(part, mp_policy=policy, reshard_after_forward=CASE["reshard"])


def split(net):
    """The usual plan of tensor parallelism, with sequence parallelism between its parts for tp_sp."""
    sequence = CASE["layout"] == "tp_sp"
    outside = Shard(1) if sequence else Replicate()
    plan = {"model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=outside),
            "lm_head": ColwiseParallel(input_layouts=outside, output_layouts=Replicate())}
    for i in range(CASE["layers"]):
        at = f"model.layers.{i}."
        plan |= {at + f"self_attn.{name}_proj": ColwiseParallel() for name in "qkv"}
        plan |= {at + f"mlp.{name}_proj": ColwiseParallel() for name in ("gate", "up")}
        plan |= {at + "self_attn.o_proj": RowwiseParallel(output_layouts=outside), at + "mlp.down_proj": RowwiseParallel(output_layouts=outside)}
        if sequence:
            plan |= {at + "input_layernorm": SequenceParallel(), at + "post_attention_layernorm": SequenceParallel(),
                     at + "mlp": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
                     at + "self_attn": PrepareModuleInput(input_kwarg_layouts={"hidden_states": Shard(1)},
                                                          desired_input_kwarg_layouts={"hidden_states": Replicate()})}
    if sequence:
        plan["model.norm"] = SequenceParallel()
    parallelize_module(net, init_device_mesh("cuda", (dist.get_world_size(),)), plan)


def prepare(net):
    """The model on the device, as the layout wants it."""
    if CASE["recompute"]:
        for block in blocks_of(net):
            checkpoint_activation.checkpoint(block)
    if CASE["layout"] == "fsdp":
        shard(net)
    elif CASE["layout"] != "ddp":
        split(net)
    net.to_empty(device="cuda")
    if CASE["model"] == "gpt2":
        net.tie_weights()
    if CASE["layout"] == "ddp":
        net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[torch.cuda.current_device()], gradient_as_bucket_view=True)
    return net


def place(event):
    frames = [f"{frame['filename'].rsplit('/', 1)[-1]}:{frame['name']}" for frame in event.get("frames", [])]
    return " < ".join(frames[:5])


def at_peak(trace, before):
    """The blocks at the highest point of an allocator's trace: [{bytes, count, where}], and how much older than the trace was gone by then."""
    alive, now, peak, then, older, older_then = {}, 0, 0, {}, 0, 0
    for event in trace:
        if event["action"] == "alloc":
            alive[event["addr"]] = event
            now += event["size"]
            if now > peak:
                peak, then, older_then = now, dict(alive), older
        elif event["action"] == "free_completed":
            now -= event["size"]
            if alive.pop(event["addr"], None) is None:
                older += event["size"]
    counts = collections.Counter((event["size"], place(event)) for event in then.values())
    listed = [{"bytes": size, "count": count, "where": where} for (size, where), count in counts.items()]
    return sorted(listed, key=lambda one: -one["bytes"] * one["count"]), before - older_then


def held(tensors):
    """Bytes of the storages of the tensors on this rank, each once, as the allocator rounds them."""
    locals_ = [t.to_local() if isinstance(t, DTensor) else t for t in tensors]
    sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in locals_}
    return sum((size + 511) // 512 * 512 for size in sizes.values())


def step(net, optimizers, tokens, positions):
    with torch.autocast("cuda", torch.bfloat16, enabled=CASE["layout"] == "ddp" and CASE["mixed"]):
        loss = net(input_ids=tokens, labels=tokens, position_ids=positions).loss
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.backends.cuda.enable_cudnn_sdp(False)
    net = prepare(model())
    kinds = [[p for p in net.parameters() if isinstance(p, DTensor) == kind] for kind in (True, False)]
    optimizers = [torch.optim.AdamW(kind, lr=1e-4, fused=True) for kind in kinds if kind]  # one takes no mixture
    tokens = torch.zeros(CASE["sequences"], CASE["seq_len"], dtype=torch.long, device="cuda")
    positions = torch.arange(CASE["seq_len"], device="cuda").expand(CASE["sequences"], -1)  # positions of the whole sequence, split or not
    for _ in range(2):
        step(net, optimizers, tokens, positions)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python")
    step(net, optimizers, tokens, positions)
    torch.cuda.synchronize()
    tensors, lasting = at_peak(torch.cuda.memory._snapshot()["device_traces"][rank], before)
    states = [value for optimizer in optimizers for state in optimizer.state.values() for value in state.values()]
    answer = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(), "lasting": lasting,
              "weights": held(net.parameters()), "optimizer": held(states), "tensors": tensors}
    if rank == 0:
        print(json.dumps(answer), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
