"""ranks.py CASE: what one process of a case of phantom_test.py does. It prints one JSON object. RANK, WORLD_SIZE and
PHANTOM_RENDEZVOUS (a file) as phantom_test.py gives them."""
import ctypes
import datetime
import json
import os
import signal
import sys

import torch
import torch.distributed as dist

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
GIB = 1 << 30


def meet():
    """Returns once every rank has come. PyTorch loads for seconds, on a busy machine for more: a short timeout begins after that."""
    store = dist.FileStore(os.environ["PHANTOM_RENDEZVOUS"] + "-meeting", WORLD)
    store.set(str(RANK), "here")
    store.wait([str(rank) for rank in range(WORLD)], datetime.timedelta(minutes=15))


def join(seconds=600, **options):
    torch.cuda.set_device(RANK)
    torch.cuda.init()
    meet()
    dist.init_process_group("nccl", init_method="file://" + os.environ["PHANTOM_RENDEZVOUS"], rank=RANK, world_size=WORLD,
                            timeout=datetime.timedelta(seconds=seconds), **options)


def memory():
    """The allocator's peak, what the device says, and the text of an OutOfMemoryError."""
    block = torch.empty(10 * GIB, dtype=torch.uint8, device="cuda")
    held = torch.cuda.mem_get_info()
    text = ""
    try:
        torch.empty(75 * GIB, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        text = str(error)
    del block
    torch.cuda.empty_cache()
    pinned = torch.arange(5).pin_memory()
    return {"name": torch.cuda.get_device_name(), "peak": torch.cuda.max_memory_allocated(), "used": held[1] - held[0],
            "after": held[1] - torch.cuda.mem_get_info()[0], "text": text, "retries": torch.cuda.memory_stats()["num_alloc_retries"],
            "back": pinned.cuda(non_blocking=True).cpu().tolist(), "pinned": pinned.is_pinned()}


def pinned():
    """The cost of 2 GiB of pinned memory on this machine once each page was written, and whether a small piece keeps what it holds."""
    def resident():
        with open("/proc/self/smaps_rollup", encoding="ascii") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    small = torch.arange(4096).pin_memory()
    before = resident()
    large = torch.empty(2 * GIB, dtype=torch.uint8, pin_memory=True)
    large[::4096] = 1
    cost = resident() - before
    on_device = large.cuda(non_blocking=True)
    return {"cost": cost, "back": int(large[-4096]), "moved": on_device.numel(), "small": int(small.sum())}


def hold():
    """Holds 40 GiB until it is killed."""
    block = torch.empty(40 * GIB, dtype=torch.uint8, device="cuda")
    print(json.dumps({"held": block.numel()}), flush=True)
    signal.pause()


def use():
    free, total = torch.cuda.mem_get_info()
    return {"used": total - free}


def forked():
    """NVML's answers to a forked child, which uses no GPU itself, and to its parent while the parent holds 1 GiB."""
    block = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        device, memory = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
        answers = [nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)), nvml.nvmlDeviceGetMemoryInfo(device, memory)]
        os.write(write, json.dumps({"answers": answers, "used": memory[2]}).encode())
        os._exit(0)
    told = json.loads(os.read(read, 4096))
    os.waitpid(child, 0)
    free, total = torch.cuda.mem_get_info()
    return {"child": told, "used": total - free, "held": block.numel()}


def clock():
    """A product's modelled time; streams that wait for each other; a graph of two products."""
    a = torch.empty(8192, 8192, dtype=torch.bfloat16, device="cuda")
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(6)]
    side = torch.cuda.Stream()
    a @ a
    torch.cuda.synchronize()
    a @ a  # the stream is busy when the host launches the next: the host's own time is no part of it
    marks[0].record()
    a @ a
    marks[1].record()
    with torch.cuda.stream(side):
        marks[2].record()
        side.wait_event(marks[1])
        marks[3].record()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        a @ a
        a @ a
    torch.cuda.synchronize()
    a @ a
    marks[4].record()
    graph.replay()
    marks[5].record()
    torch.cuda.synchronize()
    return {"product": marks[0].elapsed_time(marks[1]), "waits": marks[1].elapsed_time(marks[3]),
            "early": marks[1].elapsed_time(marks[2]), "graph": marks[4].elapsed_time(marks[5])}


def collectives():
    join(device_id=torch.device("cuda", RANK))
    on = {"device": "cuda"}
    out = {}
    total = torch.tensor([RANK + 1.0, 2.0], **on)
    dist.all_reduce(total)
    out["all_reduce"] = total.tolist()
    half = torch.tensor([RANK + 0.5], dtype=torch.bfloat16, **on)
    dist.all_reduce(half, op=dist.ReduceOp.AVG)
    out["avg"] = half.tolist()
    gathered = [torch.empty(1, dtype=torch.int64, **on) for _ in range(WORLD)]
    dist.all_gather(gathered, torch.tensor([RANK * 10], **on))
    out["all_gather"] = [t.item() for t in gathered]
    from_root = torch.tensor([RANK], **on)
    dist.broadcast(from_root, src=1)
    out["broadcast"] = from_root.item()
    part = torch.empty(1, **on)
    dist.reduce_scatter_tensor(part, torch.tensor([1.0 + i + RANK for i in range(WORLD)], **on))
    out["reduce_scatter"] = part.item()
    swapped = torch.empty(WORLD, **on)
    dist.all_to_all_single(swapped, torch.tensor([10.0 * RANK + i for i in range(WORLD)], **on))
    out["all_to_all"] = swapped.tolist()
    ring = torch.empty(1, **on)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.tensor([float(RANK)], **on), (RANK + 1) % WORLD),
                                        dist.P2POp(dist.irecv, ring, (RANK - 1) % WORLD)]):
        work.wait()
    out["ring"] = ring.item()
    pair = dist.split_group(split_ranks=[[0, 1], list(range(2, WORLD))] if WORLD > 2 else [[0, 1]])
    if RANK < 2:
        seven = torch.tensor([7.0], **on)
        dist.all_reduce(seven, group=pair)
        out["split"] = seven.item()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    large = torch.empty(128 << 20, dtype=torch.uint8, **on)
    dist.all_reduce(torch.empty(128 << 20, dtype=torch.uint8, **on))  # all have come to the same time
    begin.record()
    dist.all_reduce(large)
    end.record()
    torch.cuda.synchronize()
    out["large_ms"] = begin.elapsed_time(end)
    dist.destroy_process_group()
    return out


def exchanges():
    """Modelled milliseconds of an all-to-all of 256 MiB for each rank, without and with sizes, which are the same here."""
    join(device_id=torch.device("cuda", RANK))
    sizes = [256 << 20] * WORLD
    given, taken = (torch.empty(sum(sizes), dtype=torch.uint8, device="cuda") for _ in range(2))
    out = {}
    for name, splits in (("even", None), ("split", sizes)):
        dist.all_reduce(given)  # all have come to the same time
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        dist.all_to_all_single(taken, given, splits, splits)
        end.record()
        torch.cuda.synchronize()
        out[name] = begin.elapsed_time(end)
    dist.destroy_process_group()
    return out


def split_under_roles():
    """The sum over a split of a group whose ranks are all started, while new groups are said to be of mirrors."""
    join(device_id=torch.device("cuda", RANK))
    ctypes.CDLL(None).sweep_phantom_mirror(1)
    pair = dist.split_group(split_ranks=[[0, 1]])
    numbers = torch.tensor([RANK + 1.0], device="cuda")
    dist.all_reduce(numbers, group=pair)
    return {"sum": numbers.item()}


def objects():
    """Objects of different sizes by every call that exchanges them: PyTorch finds their sizes on the device."""
    join(device_id=torch.device("cuda", RANK))
    mine = {"rank": RANK, "filler": "x" * 100 * RANK}
    gathered = [None] * WORLD
    dist.all_gather_object(gathered, mine)
    at_root = [None] * WORLD if RANK == 0 else None
    dist.gather_object(mine, at_root)
    from_root = [{"shape": (2, 3)}, "y" * 300, 7] if RANK == 0 else [None] * 3
    dist.broadcast_object_list(from_root)
    part = [None]
    dist.scatter_object_list(part, ["z" * 50 * (rank + 1) for rank in range(WORLD)] if RANK == 0 else None)
    sent = [(4, 5), "w" * 200] if RANK == 0 else [None] * 2
    if RANK == 0:
        dist.send_object_list(sent, 1)
    else:
        dist.recv_object_list(sent, 0)
    dist.destroy_process_group()
    return {"gathered": [len(each["filler"]) for each in gathered], "root": [each["rank"] for each in at_root or []],
            "broadcast": [from_root[0]["shape"], len(from_root[1]), from_root[2]], "part": len(part[0]), "sent": [sent[0], len(sent[1])]}


def whole_numbers():
    """Operators on small whole numbers have their values, and cost what they cost without; those on floats compute nothing."""
    x = torch.arange(10, device="cuda")
    ones = torch.ones(4, dtype=torch.int32, device="cuda")
    ones[::2] += 3
    weights = torch.nn.Embedding(10, 4, device="cuda")
    weights(x).sum().backward()
    held = torch.cuda.memory_allocated()
    large = torch.arange(1 << 20, device="cuda")  # 8 MiB: more than is computed
    out = {"add": (x + 1).tolist(), "strided": (x[::2] * 2 - x[1::2]).tolist(), "in_place": ones.tolist(), "compare": (x > 7).tolist(),
           "cat": torch.cat([x[8:], x[:2]]).tolist(), "sum": x.sum().item(), "max": [each.tolist() for each in x.view(2, 5).max(dim=1)],
           "mask": x[x % 3 == 0].tolist(), "float": (x[:3] / 2).tolist(), "cast": x[:3].to(torch.float32).tolist(),
           "count": torch.bincount(x % 3).tolist(), "widest": max([torch.tensor([size], device="cuda") for size in (3, 9, 4)]).item()}
    out["large"] = large.sum().item() == sum(range(1 << 20))
    del large
    out["kept"] = torch.cuda.memory_allocated() - held
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    out["captured"] = x.tolist()  # a captured operator is not computed
    return out


def hang():
    """Rank 1 leaves the second all-reduce out; the real watchdog ends rank 0."""
    join(seconds=8)
    x = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    if RANK == 1:
        print(json.dumps({"left_out": True}), flush=True)
        signal.pause()
    dist.all_reduce(x)
    torch.cuda.synchronize()
    return {"came": True}


def mismatch():
    join(seconds=60)
    x = torch.ones(64 if RANK == 0 else 128, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    return {"came": True}


def both_send():
    """Both ranks send before they receive: that ends where the message is buffered."""
    join(seconds=8)
    x = torch.ones(int(os.environ["PHANTOM_BYTES"]), dtype=torch.uint8, device="cuda")
    dist.send(x, 1 - RANK)
    dist.recv(x, 1 - RANK)
    torch.cuda.synchronize()
    return {"came": True}


def train():
    """FSDP2 on a small transformer, three steps; what the steps allocated and how long they are modelled to take."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    join()
    torch.manual_seed(0)
    layers = [torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True, device="meta") for _ in range(4)]
    model = torch.nn.Sequential(*layers)
    for layer in layers:
        fully_shard(layer, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    fully_shard(model)
    model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.zeros(4, 256, 512, device="cuda")
    times = []
    for _ in range(3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    out = {"ms": times, "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    dist.destroy_process_group()
    return out


def work():
    """Something of everything that faults strike; which exception ended it."""
    try:
        join(seconds=12)
        a = torch.empty(512, 512, device="cuda")
        for _ in range(10):
            a = a @ a
            dist.all_reduce(a)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(10):
            a = a @ a
        end.record()
        torch.cuda.synchronize()
        return {"error": "", "ms": begin.elapsed_time(end)}
    except Exception as error:  # its type is the answer
        return {"error": type(error).__name__, "text": str(error)}


def attention():
    q = torch.empty(2, 16, 1024, 128, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    out.sum().backward()
    torch.cuda.synchronize()
    return {"shape": list(q.grad.shape)}


def few_queries():
    """FlashAttention of 256 queries and keys: LibTorch splits the keys over blocks, and a second kernel adds them up."""
    q = torch.empty(1, 28, 256, 128, dtype=torch.bfloat16, device="cuda")
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        begin.record()
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
        end.record()
    torch.cuda.synchronize()
    return {"ms": begin.elapsed_time(end)}


if __name__ == "__main__":
    answer = globals()[sys.argv[1]]()
    print(json.dumps(answer), flush=True)
    if sys.argv[1] == "work":
        os._exit(0)  # a watchdog that still waits ends nothing more
