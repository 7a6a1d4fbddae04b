#!/usr/bin/env python3
"""launch_table.py BIN [--model BASE] [--tokens N] [--sequences N] [--precision P] [--axis NAME=VALUE]...: what a layer of a step launches on a
phantom H100, kernel by kernel: half the difference of the last step of 4 layers and of 2. GB are those that kernels tell (products,
fused kernels); others tell none. A further line has the update of the optimizer apart: it is no part of forward and backward. The last
line has the largest block that came and went within the step of 2 layers. scripts/phantom --launches FILE lists those of any program."""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile

BLOCK = re.compile(r"(malloc|free) (0x[0-9a-f]+)$")


def parsed(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--model", default="llama3-8b")
    parser.add_argument("--tokens", type=int, default=4096, help="of a sequence")
    parser.add_argument("--sequences", type=int, default=1, help="of the micro-batch")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--axis", action="append", default=[], help="a further axis of the trial, NAME=VALUE")
    parser.add_argument("--all", action="store_true", help="launches of the whole step of 2 layers too, in order")
    return parser.parse_args(words)


def group_of(name):
    """(what it is part of, a name to print)"""
    if name.startswith("product") or "cutlass13device_kernel" in name:
        return "product", name if name.startswith("product") else "grouped product"
    if "flash_" in name or name.startswith("cudnn"):
        found = re.search(r"flash_[a-z_]+kernel", name)
        return "attention", found.group(0) if found else name
    if "multi_tensor_apply" in name or name.startswith("adamw"):
        return "update", "update of the optimizer"
    if re.fullmatch(r"[a-z_]+_(packed|single)", name):
        return "fused", name.rsplit("_", 1)[0]
    operator = re.search(r"(reduce_kernel|gather_kernel|index_[a-z_]+|prepare_grouped_gemm_data|[a-z_]*elementwise_kernel|softmax_[a-z_]+)", name)
    return "library", operator.group(1) if operator else name[:60]


def last_step(options, layers):
    """(bytes, name) of each launch of the last step, and of each block that is given or freed between them: without the caching
    allocator a block is a tensor."""
    with tempfile.TemporaryDirectory(prefix="sweep-launches-") as folder:
        log, db, grid = (pathlib.Path(folder) / name for name in ("log", "db", "grid.yaml"))
        further = "".join(f", {name}: {value}" for name, value in (axis.split("=", 1) for axis in options.axis))
        grid.write_text(f"name: launches\nmodel: {{name: part, base: {options.model}, layers: {layers}}}\n"
                        f"base: {{hardware: h100-sxm-80gb, gpus_per_node: 1, dp: 1, seq_len: {options.tokens}, precision: {options.precision}, "
                        f"micro_batch_size: {options.sequences}, global_batch_size: {options.sequences}{further}}}\n"
                        "limits: {memory_margin_percent: 900}\nmeasure: {warmup_steps: 1, steps: 2}\n")
        sweep = str(options.bin / "sweep")
        subprocess.run([sweep, "run", str(grid), "--rehearse", "--db", str(db), "--yes"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={**os.environ, "SWEEP_PHANTOM_LAUNCHES": str(log), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
        said = subprocess.run([sweep, "query", "select step_launches from results", "--db", str(db), "--json"], check=True, capture_output=True)
        lines = [(float(bytes_), name) for _, bytes_, name in (line.split("\t", 2) for line in log.read_text().splitlines())]
    launches = [at for at, (_, name) in enumerate(lines) if not BLOCK.match(name)]
    return lines[launches[-json.loads(said.stdout)[0]["step_launches"]]:launches[-1] + 1]


def largest_temporary(step):
    """Bytes of the largest block that is given and freed in the step."""
    given: dict[str, float] = {}
    gone = [0.0]
    for bytes_, name in step:
        found = BLOCK.match(name)
        if found and found[1] == "malloc":
            given[found[2]] = bytes_
        elif found:
            gone.append(given.pop(found[2], 0.0))
    return max(gone)


def of_a_layer(two, four):
    """Launches of a layer, and GB that they tell, by (group, name): half the difference of two steps."""
    counts: collections.defaultdict[tuple[str, str], float] = collections.defaultdict(float)
    moved: collections.defaultdict[tuple[str, str], float] = collections.defaultdict(float)
    for sign, step in ((-0.5, two), (0.5, four)):
        for bytes_, name in step:
            if not BLOCK.match(name):
                counts[group_of(name)] += sign
                moved[group_of(name)] += sign * bytes_ / 1e9
    return {key: count for key, count in counts.items() if count}, moved


def main():
    options = parsed()
    two, four = last_step(options, 2), last_step(options, 4)
    if options.all:
        print("\n".join(f"{group_of(name)[0]:10} {group_of(name)[1]} {bytes_ / 1e6:.1f} MB" for bytes_, name in two if not BLOCK.match(name)))
    counts, moved = of_a_layer(two, four)
    for (group, name), count in sorted(counts.items()):
        print(f"{group:10} {count:6.1f} {moved[group, name]:8.3f} GB  {name}")
    passes = {key: count for key, count in counts.items() if key[0] != "update"}
    between = sum(gigabytes for (group, _), gigabytes in moved.items() if group in ("fused", "library"))
    print(f"forward and backward of a layer: {sum(passes.values()):g} launches, {between:.2f} GB told beside products and attention,"
          f" {sum(count for (group, _), count in passes.items() if group == 'library'):g} launches that tell none;"
          f" update: {counts.get(('update', 'update of the optimizer'), 0):g}")
    print(f"largest temporary of the step: {largest_temporary(two) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
