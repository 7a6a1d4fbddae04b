"""nanotron of January 2025 (huggingface/nanotron, 9055c664) trains a model of its config file on random tokens.

    NANOTRON=/path/to/nanotron torchrun --nproc-per-node 8 -m sweep_trial train.py --config-file config.yaml

The trainer is nanotron's own. Six things are mended here, none of them changes what a training step allocates:
an import that PyTorch has moved; the package datasets, of which it only needs a class of paths; flash-attn's functions, which are stood in for by flash_attn/ beside this file; the resets of the
allocator's peaks, of which only the first one is kept; and the descriptions that pipeline stages send before each tensor. nanotron
compares and adds their numbers by GPU kernels, which phantom GPUs do not compute (docs/phantom.md); here the host does. For the same
reason objects that ranks exchange are padded to one size: PyTorch looks for the largest one by kernels."""
import argparse
import os
import pathlib
import pickle
import sys
import types

import functorch.dim
import torch.utils._pytree

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), os.environ["NANOTRON"] + "/src"]
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")  # its tensor parallelism asks for it
sys.modules["wandb"] = None  # as if it were not installed: nanotron would report there
functorch.dim.tree_map = torch.utils._pytree.tree_map
for name in ("datasets", "datasets.download", "datasets.download.streaming_download_manager"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[name].xPath = pathlib.PosixPath

import nanotron.trainer  # noqa: E402
from nanotron import distributed as dist  # noqa: E402
from nanotron.dataloader import dummy_infinite_data_generator  # noqa: E402
from nanotron.parallel.pipeline_parallel import p2p  # noqa: E402
from nanotron.parallel.pipeline_parallel.utils import get_input_output_pp_ranks  # noqa: E402


def describe(self, tensor, to_rank, tag):
    """Sends what the receiver needs to make room for a tensor: the two messages of P2P._send_meta."""
    peer = dist.get_global_rank(group=self.pg, group_rank=to_rank)
    for message in (p2p.P2PTensorMetaData.to_first_metadata(tensor, self.device),
                    p2p.P2PTensorMetaData.to_second_metadata(tensor, self.device)):
        dist.send(message, dst=peer, group=self.pg, tag=tag)


def description(self, from_rank, tag):
    """Receives them, and reads their numbers on the host."""
    peer = dist.get_global_rank(group=self.pg, group_rank=from_rank)
    first = torch.empty(p2p.FIRST_METADATA_SIZE, dtype=torch.long, device=self.device)
    dist.recv(first, src=peer, group=self.pg, tag=tag)
    numbers = first.tolist()
    second = torch.empty(numbers[0] + numbers[1], dtype=torch.long, device=self.device)
    dist.recv(second, src=peer, group=self.pg, tag=tag)
    return p2p.P2PTensorMetaData.from_metadata(numbers, second.tolist())


def padded(thing, device, _):
    """distributed_c10d._object_to_tensor; unpickling stops at the end of the object."""
    data = pickle.dumps(thing)
    data += bytes(-len(data) % 16384)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).to(device), torch.tensor([len(data)], device=device)


def forget_peaks_once(logger):
    """nanotron forgets the allocator's peaks twice in each of the first five steps; the first time, the model has been built."""
    if not forget_peaks_once.done:
        torch.cuda.reset_peak_memory_stats()
    forget_peaks_once.done = True


forget_peaks_once.done = False
p2p.P2P._send_meta, p2p.P2P._recv_meta = describe, description
nanotron.trainer.log_memory = forget_peaks_once
torch.distributed.distributed_c10d._object_to_tensor = padded


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config-file", required=True)
    trainer = nanotron.trainer.DistributedTrainer(parser.parse_args().config_file)
    first, last = get_input_output_pp_ranks(model=trainer.model)
    batches = dummy_infinite_data_generator(
        micro_batch_size=trainer.micro_batch_size, sequence_length=trainer.sequence_length, input_pp_rank=first, output_pp_rank=last,
        vocab_size=trainer.model_config.vocab_size, seed=trainer.config.general.seed, parallel_context=trainer.parallel_context)()
    trainer.train({stage.name: batches for stage in trainer.config.data_stages})


if __name__ == "__main__":
    main()
