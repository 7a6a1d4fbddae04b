#!/usr/bin/env python3
"""recipe_parsers.py RECIPE [FOLDER]: gives each trial on standard input (a JSON object a line, with `program`) to a trainer's own parser.
Answers a JSON object a line: {"read": {axis: value as the trainer read it}} or {"refused": reason}. Used by check_recipes.py."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import types
import typing
import unittest.mock


def megatron(folder):
    """parse_args, validate_args and the TransformerConfig made from them, as pretrain_gpt.py does."""
    if folder:
        sys.path.insert(0, folder)
    if not hasattr(typing, "override"):  # before Python 3.12
        setattr(typing, "override", lambda method: method)  # noqa: B010 (no attribute that a type checker knows)
    from megatron.training import arguments
    arguments.get_device_arch_version = lambda: 9  # stands for a GPU, which is not needed to parse

    def read(words, trial, files):
        os.environ.update(WORLD_SIZE=str(trial["nodes"] * trial["gpus_per_node"]), RANK="0", LOCAL_RANK="0",
                          LOCAL_WORLD_SIZE=str(trial["gpus_per_node"]))
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
        os.environ.update({key: value for key, value in json.loads(trial["program"]).get("env", {}).items() if value})
        sys.argv = ["pretrain_gpt.py", *words[words.index("pretrain_gpt.py") + 1:]]
        args = arguments.validate_args(arguments.parse_args())
        arguments.core_transformer_config_from_args(args)
        return {"tp": args.tensor_model_parallel_size, "pp": args.pipeline_model_parallel_size, "cp": args.context_parallel_size,
                "dp": args.data_parallel_size, "micro_batch_size": args.micro_batch_size, "global_batch_size": args.global_batch_size,
                "seq_len": args.seq_length, "sp": args.sequence_parallel}
    return read


def nanotron(folder):
    """get_config_from_file: its dataclasses by dacite, and their checks."""
    if folder:
        sys.path.insert(0, folder)
    if "datasets" not in sys.modules:  # only a class of paths is needed of it
        for name in ("datasets", "datasets.download", "datasets.download.streaming_download_manager"):
            sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name])["xPath"] = pathlib.PosixPath
    for name in ("flash_attn", "flash_attn.flash_attn_interface", "flash_attn.layers", "flash_attn.layers.rotary"):
        sys.modules[name] = unittest.mock.MagicMock(__version__="2.6.3", __spec__=None)  # its kernels are not needed to parse
    from nanotron.config import get_config_from_file

    def read(words, trial, files):
        config = get_config_from_file(str(files / "config.yaml"))
        if isinstance(config.model.model_config, dict):
            raise ValueError(f"no class of models takes {sorted(config.model.model_config)}")
        return {"tp": config.parallelism.tp, "pp": config.parallelism.pp, "dp": config.parallelism.dp, "zero": config.optimizer.zero_stage,
                "micro_batch_size": config.tokens.micro_batch_size, "grad_accum": config.tokens.batch_accumulation_per_replica,
                "seq_len": config.tokens.sequence_length, "global_batch_size": config.global_batch_size}
    return read


def torchtitan(folder):
    """ConfigManager, without the rest of the package, which wants more of PyTorch than a parser does."""
    if folder:
        sys.path.insert(0, folder)
        package = types.ModuleType("torchtitan")
        package.__path__ = [str(pathlib.Path(folder) / "torchtitan")]
        sys.modules["torchtitan"] = package
    from torchtitan.config.manager import ConfigManager

    def read(words, trial, files):
        config = ConfigManager().parse_args(words[words.index("torchtitan.train") + 1:])
        layout = config.parallelism
        shards = layout.data_parallel_replicate_degree * layout.data_parallel_shard_degree
        return {"tp": layout.tensor_parallel_degree, "pp": layout.pipeline_parallel_degree, "cp": layout.context_parallel_degree,
                "dp": shards, "seq_len": config.training.seq_len, "global_batch_size": config.training.global_batch_size}
    return read


def huggingface(folder):
    """HfArgumentParser and the checks of TrainingArguments, as on a GPU that knows bf16."""
    from transformers import HfArgumentParser, TrainingArguments, training_args
    training_args.is_torch_bf16_gpu_available = lambda: True
    # Imports here what it would import at its first use: each trial is parsed in a process of its own.
    HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(["--output_dir", "/tmp", "--use_cpu", "True"], look_for_args_file=False)

    def read(words, trial, files):
        settings, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(words[words.index("train.py") + 1:],
                                                                                   look_for_args_file=False)
        return {"micro_batch_size": settings.per_device_train_batch_size, "grad_accum": settings.gradient_accumulation_steps}
    return read


def lightning(folder):
    """LightningCLI's parser, of which the Trainer is not made: it would look for the GPUs."""
    from lightning.pytorch import Trainer
    from lightning.pytorch.cli import LightningArgumentParser

    def read(words, trial, files):
        parser = LightningArgumentParser()
        parser.add_lightning_class_args(Trainer, "trainer")
        options = parser.parse_args(words[words.index("train.py") + 1:]).trainer
        return {"gpus_per_node": int(options.devices), "nodes": options.num_nodes, "grad_accum": options.accumulate_grad_batches}
    return read


def deepspeed(folder):
    """DeepSpeedConfig, which asks a topology for the number of data-parallel ranks."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    with contextlib.redirect_stdout(sys.stderr):
        from deepspeed.runtime import config

    def read(words, trial, files):
        world = trial["nodes"] * trial["gpus_per_node"]
        config.dist = types.SimpleNamespace(get_rank=lambda: 0, get_world_size=lambda *_: world, is_initialized=lambda: True)
        topology = types.SimpleNamespace(get_data_parallel_world_size=lambda: trial["dp"])
        parsed = config.DeepSpeedConfig(str(files / "ds.json"), mpu=topology)
        return {"micro_batch_size": parsed.train_micro_batch_size_per_gpu, "grad_accum": parsed.gradient_accumulation_steps,
                "global_batch_size": parsed.train_batch_size, "zero": parsed.zero_optimization_stage}
    return read


PARSERS = {each.__name__: each for each in (megatron, nanotron, torchtitan, huggingface, lightning, deepspeed)}


def filled(text, files):
    """The text that the agent makes of a rendered one: names that only a rank knows have values, doubled braces are single ones."""
    for name, value in (("files", str(files)), ("node", "0"), ("master_addr", "127.0.0.1"), ("master_port", "29500")):
        text = text.replace("{" + name + "}", value)
    return text.replace("{{", "{").replace("}}", "}")


def ask(read, trial, files):
    """One answer. A parser that leaves by exit code has said why on stderr."""
    program = json.loads(trial["program"])
    for name, text in program.get("files", {}).items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(filled(text, files))
    words = [filled(word, files) for word in program["argv"] if word]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return {"read": read(words, trial, files)}
    except SystemExit:
        return {"refused": " ".join(said.getvalue().split())[-300:]}
    except Exception as error:  # whatever a trainer's check raises is its answer
        return {"refused": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


def apart(read, trial):
    """In a process of its own: parsers keep state, and some end the process."""
    out, into = os.pipe()
    if os.fork() == 0:
        with tempfile.TemporaryDirectory() as folder:
            answer = json.dumps(ask(read, trial, pathlib.Path(folder)))
        os.write(into, answer.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        answer = pipe.read()
    os.wait()
    return answer or json.dumps({"refused": "the parser ended its process"})


def main():
    recipe, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    read = PARSERS[recipe](folder)
    for line in sys.stdin:
        print(apart(read, json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
