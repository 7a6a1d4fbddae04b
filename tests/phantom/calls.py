"""calls.py CASE: one process that asks CUDA and NCCL what PyTorch does not ask in ranks.py. It prints one JSON object."""
import ctypes
import json
import sys

import torch

GIB = 1 << 30
LIBRARY = ctypes.CDLL(None)  # what is preloaded comes first
CLOCK, BUS, SHARED_OF_MULTIPROCESSOR, SHARED_OF_BLOCK = 36, 37, 81, 97  # cudaDeviceAttr
UINT8 = 1  # ncclDataType_t


def good(result):
    if result != 0:
        raise RuntimeError(f"error {result}")


def timed(work):
    """Milliseconds that the work is modelled to take, once what it allocates is cached. The stream is busy when the host launches
    the work, so the host's own time is no part of it."""
    busy = torch.empty(16384, 16384, dtype=torch.bfloat16, device="cuda")
    busy @ busy
    work()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    busy @ busy
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def attributes():
    value = ctypes.c_int()
    out = []
    for attribute in (CLOCK, BUS, SHARED_OF_MULTIPROCESSOR, SHARED_OF_BLOCK):
        good(LIBRARY.cudaDeviceGetAttribute(ctypes.byref(value), attribute, 0))
        out.append(value.value)
    return {"bandwidth": 2 * out[0] * 1e3 * out[1] / 8, "shared": out[2:]}


def managed():
    """More managed memory than the device has, as paged optimizers take it; it has content on the host."""
    before = used()
    at = ctypes.c_void_p()
    good(LIBRARY.cudaMallocManaged(ctypes.byref(at), ctypes.c_size_t(100 * GIB), 1))
    ctypes.memset(at.value + 90 * GIB, 7, 1)
    told = (ctypes.c_int * 64)()
    good(LIBRARY.cudaPointerGetAttributes(told, ctypes.c_void_p(at.value + GIB)))
    back = ctypes.string_at(at.value + 90 * GIB, 1)[0]
    charged = used() - before
    good(LIBRARY.cudaFree(at))
    return {"charged": charged, "kind": told[0], "back": back}


RESERVED_HIGH, USED_HIGH = 6, 8  # of cudaMemPoolAttr


def pool():
    """Under PyTorch's allocator that takes cudaMallocAsync."""
    before = used()
    large = torch.empty(4 * GIB, dtype=torch.uint8, device="cuda")
    small = [torch.empty(512, dtype=torch.uint8, device="cuda") for _ in range(1000)]
    out = {"held": torch.cuda.memory_allocated(), "used": used() - before}
    del large
    out["kept"] = used() - before
    out["after"], out["peak"] = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out["reset"] = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    handle, bytes_ = ctypes.c_void_p(), ctypes.c_uint64(0)
    good(LIBRARY.cudaDeviceGetDefaultMemPool(ctypes.byref(handle), 0))
    good(LIBRARY.cudaMemPoolSetAttribute(handle, USED_HIGH, ctypes.byref(bytes_)))
    good(LIBRARY.cudaMemPoolGetAttribute(handle, RESERVED_HIGH, ctypes.byref(bytes_)))
    return {**out, "trimmed": used() - before, "reserved_most": bytes_.value, "small": len(small)}


def products():
    """8192 x 8192 x 8192 in eight and in four bits; a product that is nearly all result, in 16 bits, of fp8."""
    eight = torch.empty(8192, 8192, dtype=torch.int8, device="cuda")
    four = torch.empty(8192, 4096, dtype=torch.uint8, device="cuda").view(torch.float4_e2m1fn_x2)
    scale = torch.empty(8192 * 512, dtype=torch.float8_e4m3fn, device="cuda")
    thin, one = torch.empty(8192, 16, dtype=torch.float8_e4m3fn, device="cuda"), torch.ones((), device="cuda")
    return {"thin": timed(lambda: torch._scaled_mm(thin, thin.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)),
            "int8": timed(lambda: torch._int_mm(eight, eight)),
            "fp4": timed(lambda: torch._scaled_mm(four, four.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16))}


def deterministic_attention():
    q = torch.empty(1, 8, 8192, 128, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    out = []
    for deterministic in (False, True):
        torch.use_deterministic_algorithms(deterministic)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            got = torch.nn.functional.scaled_dot_product_attention(q, q, q)
            grad = torch.empty_like(got)
            out.append(timed(lambda got=got, grad=grad: torch.autograd.grad(got, q, grad, retain_graph=True)))
    return {"ms": out}


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def groups():
    """Groups of messages of 16 MiB, on one node, on two and on 16, of a communicator whose 15 other ranks are mirrors."""
    ranks, count = 16, 16 << 20
    torch.cuda.set_device(0)
    data = ctypes.c_void_p(torch.empty(2 * ranks * count, dtype=torch.uint8, device="cuda").data_ptr())
    out = {}
    for nodes in (1, 2, 16):
        name, comm = UniqueId(), ctypes.c_void_p()
        LIBRARY.sweep_phantom_mirror(nodes)
        good(LIBRARY.ncclGetUniqueId(ctypes.byref(name)))
        good(LIBRARY.ncclCommInitRank(ctypes.byref(comm), ranks, name, 0))

        def messages(to, *sources, comm=comm):
            good(LIBRARY.ncclGroupStart())
            for peer in to:
                good(LIBRARY.ncclSend(data, ctypes.c_size_t(count), UINT8, peer, comm, None))
            for peer in sources:
                good(LIBRARY.ncclRecv(data, ctypes.c_size_t(count), UINT8, peer, comm, None))
            good(LIBRARY.ncclGroupEnd())

        def gathers(times, comm=comm):
            good(LIBRARY.ncclGroupStart())
            for _ in range(times):
                good(LIBRARY.ncclAllGather(data, data, ctypes.c_size_t(count), UINT8, comm, None))
            good(LIBRARY.ncclGroupEnd())

        messages([1])  # connects
        out[nodes] = {
            "all": timed(lambda: messages(range(ranks), *range(ranks))),
            "all_to_all": timed(lambda comm=comm: good(LIBRARY.ncclAlltoAll(data, data, ctypes.c_size_t(count), UINT8, comm, None))),
            "next": timed(lambda: messages([1])), "both": timed(lambda: messages([1], 15)), "itself": timed(lambda: messages([0], 0)),
            "gather": timed(lambda: gathers(1)), "gathers": timed(lambda: gathers(3))}
    return out


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()), flush=True)
