"""nanotron of January 2025 (huggingface/nanotron, 9055c664) trains a model of its config file on random tokens.

    NANOTRON=/path/to/nanotron torchrun --nproc-per-node 8 -m sweep_trial train.py --config-file config.yaml

The trainer is nanotron's own. Four things are mended here, none of them changes what a training step allocates:
an import that PyTorch has moved; the package datasets, of which it only needs a class of paths; flash-attn's functions, which are stood in for by flash_attn/ beside this file; and the resets of the
allocator's peaks, of which only the first one is kept."""
import argparse
import os
import pathlib
import sys
import types

import functorch.dim
import torch.utils._pytree

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), os.environ["NANOTRON"] + "/src"]
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")  # its tensor parallelism asks for it
sys.modules["wandb"] = None  # looks as if it were not installed: nanotron would report there
functorch.dim.tree_map = torch.utils._pytree.tree_map
for name in ("datasets", "datasets.download", "datasets.download.streaming_download_manager"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[name].xPath = pathlib.PosixPath

import nanotron.trainer  # noqa: E402
from nanotron.dataloader import dummy_infinite_data_generator  # noqa: E402
from nanotron.parallel.pipeline_parallel.utils import get_input_output_pp_ranks  # noqa: E402


def forget_peaks_once(logger):
    """nanotron forgets the allocator's peaks twice in each of the first five steps; the first time, the model has been built."""
    if not forget_peaks_once.done:
        torch.cuda.reset_peak_memory_stats()
    forget_peaks_once.done = True


forget_peaks_once.done = False
nanotron.trainer.log_memory = forget_peaks_once


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
