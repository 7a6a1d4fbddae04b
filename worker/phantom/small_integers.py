"""Computes PyTorch's operators on small whole numbers of phantom GPUs, on the host. Kernels compute nothing there, and programs read such
numbers back to go on: the sizes of pickled objects, the shapes that pipeline stages announce, positions, counts.

libsweep_phantom runs this file once in a Python process that uses a phantom GPU. Each operator below gets a kernel that calls the
original one (so memory, launches and modelled time stay what they are), then carries the operator out on the same memory: a
phantom's memory is memory of this process. Only where every tensor is of whole numbers or bools and all together have at most 64 KiB."""
import ctypes
import sys
import threading
import warnings

import torch

OPERATORS = """abs add all amax amin any arange argmax argmin bincount bitwise_not cat clamp copy cumsum div eq fill flip floor_divide ge gt
 histc index index_select le logical_and logical_not logical_or lt max min mul ne neg nonzero prod remainder sort sub sum zero""".split()
WHOLE = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
MOST_BYTES = 64 << 10  # the same limit as for copies and NCCL payloads (docs/phantom.md)

_settle = ctypes.CDLL(None).sweep_phantom_settle
_settle.argtypes = [ctypes.c_void_p]


def tensors_in(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def small(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) <= MOST_BYTES


def computable(tensors):
    """Whether they are small whole numbers on a GPU, beside single ones of the host."""
    for tensor in tensors:
        if tensor.dtype not in WHOLE or tensor.layout != torch.strided or not (tensor.is_cuda or tensor.dim() == 0):
            return False
    return small(tensors)


def settled(tensor):
    """Whether what the current stream was given before has been carried out; waits for peers where it must, but not for ever."""
    return _settle(torch.cuda.current_stream(tensor.device).cuda_stream) == 1


def on_host(value):
    """The same memory as a tensor of the host."""
    if isinstance(value, (list, tuple)):
        return [on_host(each) for each in value]
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return value
    if value.numel() == 0:
        return torch.empty(value.shape, dtype=value.dtype)
    span = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride()))
    memory = (ctypes.c_byte * (span * value.element_size())).from_address(value.data_ptr())
    return torch.frombuffer(memory, dtype=value.dtype).as_strided(value.shape, value.stride())


def carry_out(operator, args, kwargs):
    return operator(*(on_host(each) for each in args), **{name: on_host(each) for name, each in kwargs.items()})


class Operator:
    """The kernel of one operator that stands before PyTorch's own."""

    def __init__(self, operator):
        self.operator, self.original = operator, torch.library.get_kernel(operator, "CUDA")
        self.converts = operator.name().startswith("aten::copy")  # into any type
        self.counts = operator.name().startswith("aten::nonzero")  # PyTorch's reads from the device how large the result is
        self.tensors = [place for place, each in enumerate(operator._schema.arguments) if str(each.type) == "Tensor"]
        self.takes_numbers = torch._C._should_allow_numbers_as_tensors(operator.name().split("::")[1].split(".")[0])
        self.local = threading.local()

    def __call__(self, keys, *args, **kwargs):
        """A plain number for a tensor (x + 1) comes as a number, and PyTorch's kernel takes it only inside of a call of the operator."""
        if any(place < len(args) and isinstance(args[place], (bool, int, float, complex)) for place in self.tensors):
            if self.takes_numbers and not getattr(self.local, "called", False):
                self.local.called = True
                try:
                    return self.operator(*args, **kwargs)
                finally:
                    self.local.called = False
            if not self.takes_numbers:
                args = [torch.tensor(each) if place in self.tensors and not isinstance(each, torch.Tensor) else each
                        for place, each in enumerate(args)]
        self.local.called = False
        return self.run(keys, args, kwargs)

    def run(self, keys, args, kwargs):
        given = list(tensors_in((*args, *kwargs.values())))
        if given and not computable(given[1:] if self.converts else given):
            return self.original.call_boxed(keys, *args, **kwargs)
        if self.counts and settled(given[0]):
            return carry_out(self.operator, args, kwargs).to(given[0].device)
        results = self.original.call_boxed(keys, *args, **kwargs)
        made = list(tensors_in((results,)))
        if made and all(each.is_cuda for each in made) and small(made) and (given or made[0].dtype in WHOLE) and settled(made[0]):
            for result, computed in zip(made, tensors_in((carry_out(self.operator, args, kwargs),))):
                on_host(result).copy_(computed)
        return results


def has_kernel(operator, key):
    return torch._C._dispatch_has_kernel(operator.name()) and torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), key)


def teach_all():
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each of them had a kernel
        for packet in (getattr(torch.ops.aten, each, None) for name in OPERATORS for each in (name, name + "_")):
            for operator in [getattr(packet, each) for each in packet.overloads()] if packet else []:
                if has_kernel(operator, "CUDA") or has_kernel(operator, "CompositeExplicitAutograd"):
                    library.impl(operator, Operator(operator), "CUDA", with_keyset=True)
    return library


if hasattr(torch.library, "get_kernel"):
    LIBRARY = teach_all()
else:
    print("phantom GPUs: PyTorch before 2.9 gives no kernel to call on: small whole numbers are not computed", file=sys.stderr)
