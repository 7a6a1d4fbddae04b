#!/usr/bin/env python3
"""mutation_test.py COMPILER: the test of the fused kernels must pass for all types, under each sanitizer. Then takes a barrier, a bound or
a scale out of them, one at a time; it must fail on each, under the sanitizer that is named."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = "bench_kernels/kernels/device"
# file, what is there once, what stands there instead, sanitizer that the test is built with
MUTANTS = {
    "the barrier before a room is used again": ("scalar.h", "__syncthreads();  // before", "// before", "thread"),
    "the barrier before warps' sums are read": ("scalar.h", "  __syncthreads();\n  A sum = 0;", "  A sum = 0;", "thread"),
    "the barrier between groups of a sum": ("norm.h", "room[threadIdx.x] = sum;\n  __syncthreads();", "room[threadIdx.x] = sum;", "thread"),
    "the bound of whole packs": ("scalar.h", "const Index whole = n - n % K;", "const Index whole = n;", "address,undefined"),
    "the bound of columns that are summed": ("norm.h", "|| column >= width) return", ") return", "address,undefined"),
    "the bound of rows": ("activation.h", "row < args.rows; row += gridDim.x) {\n    T* in", "row <= args.rows; row += gridDim.x) {\n    T* in", "address,undefined"),
    "the norm's division by its columns": ("norm.h", "dot = block_sum(dot, room) / static_cast<A>(n);", "dot = block_sum(dot, room);", ""),
    "what is added to a norm's weights": ("norm.h", "if constexpr (!kLayer) weight[k] += static_cast<A>(args.plus);\n        v[k]", "v[k]", ""),
    "the barrier before the maps of codes are read": ("eight_bit.h", "args.maps)[i];\n  __syncthreads();", "args.maps)[i];", "thread"),
    "the barrier before warps' largest are read": ("eight_bit.h", "  __syncthreads();\n  A most", "  A most", "thread"),
    "the bound of numbers in blocks": ("eight_bit.h", "i < args.n;", "true;", "address,undefined"),
    "the scale of a block": ("eight_bit.h", "most_m > 0 ? m / most_m : A(0)", "m", ""),
    "the barrier before maps of 4 bits are read": ("nf4.h", "  __syncthreads();  // before they are read\n", "", "thread"),
    "the bound of pieces of blocks": ("nf4.h", "i < pieces; i += threads", "i <= pieces; i += threads", "address,undefined"),
    "the stride over pieces of blocks": ("nf4.h", "i < pieces; i += threads", "i < pieces; i += pieces", ""),
    "the offset of a quantized tensor": ("nf4.h", "/ kNf4ScaleBlock], offset)", "/ kNf4ScaleBlock], 0.0F)", ""),
    "the barrier before a tile is read": ("fp8.h", "    __syncthreads();\n    for (Index c", "    for (Index c", "thread"),
    "the bound of a tile's rows": ("fp8.h", "r < kTile && row + r < args.rows;", "r < kTile;", "address,undefined"),
    "a tie to the even code": ("fp8.h", " - 1 + ((magnitude >> (23 - kMantissa)) & 1u)", "", ""),
    "the bound of tokens of warps": ("experts.h", "row < tokens;", "row <= tokens;", "address,undefined"),
    "a choice that was not served": ("experts.h", "if (places[j] < 0) continue;", "", "address,undefined"),
    "the sum of the chosen probabilities": ("experts.h", "args.normalized != 0 ? warp_sum(sum) : A(1)", "A(1)", ""),
    "the mean of a softmax's gradient": ("experts.h", "(gradient(e) - mean)", "gradient(e)", ""),
    "the barrier before the room of the largest is used again": ("eight_bit.h", "  __syncthreads();  // before the room is used again", "", "thread"),
    "the barrier before the heads' shares are read": ("sinks.h", "    __syncthreads();  // before the heads' shares are read\n", "", "thread"),
    "the barrier before a head's columns are added up": ("sinks.h", "    __syncthreads();  // before the columns of a head are added up\n", "", "thread"),
    "the sink's share of a row": ("sinks.h", "exponential(sink - lse_of<A>(args, row, of)) * dot", "dot", ""),
    "the end of a group": ("experts.h", "row < ends[group];", "row <= ends[group];", ""),
    "the group of a row": ("experts.h", "ends[middle] > row", "ends[middle] >= row", ""),
    "the largest logit so far": ("loss.h", "sum *= exponential(most - above), most = above;", "most = above;", ""),
    "the share's first entry": ("loss.h", "place = label - args.first", "place = label", ""),
    "rows without a label": ("loss.h", "label < 0 ? A(0) : (c + k", "(c + k", ""),
    "the bound of a chunk": ("adamw.h", "left < args.chunk ? left : args.chunk", "args.chunk", "address,undefined"),
    "the tensor that a chunk is of": ("adamw.h", ".first <= chunk", ".first < chunk", ""),
    "the factor of gradients": ("adamw.h", "static_cast<A>(args.coefficient) * g[k]", "g[k]", ""),
    "a rotation's sign": ("rope.h", "sine = sign * sines[k]", "sine = sines[k]", ""),
}


def run(compiler, folder, sanitizer, *options):
    """The exit code of the kernels' test as it stands in the folder."""
    program = folder / "device_test"
    if sanitizer:
        options += f"-fsanitize={sanitizer}", "-fno-sanitize-recover=undefined"
    subprocess.run([compiler, "-std=c++20", "-O1", *options, "-I", str(folder), str(folder / "tests/device/device_test.cpp"), "-o", str(program)], check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, check=False)


def main():
    survivors = []
    with tempfile.TemporaryDirectory(prefix="sweep-mutation-") as name:
        folder = pathlib.Path(name)
        for part in (KERNELS, "tests/device"):
            shutil.copytree(ROOT / part, folder / part)
        (folder / "tests/support").mkdir()
        shutil.copy(ROOT / "tests/support/cuda_shim.h", folder / "tests/support")
        for sanitizer in ("thread", "address,undefined"):  # kernels of all types, as they are
            done = run(sys.argv[1], folder, sanitizer)
            assert done.returncode == 0, f"{sanitizer}: {done.stdout}{done.stderr}"
        for what, (file, there, instead, sanitizer) in MUTANTS.items():
            path = folder / KERNELS / file
            text = path.read_text()
            assert text.count(there) == 1, f"{file} has {there!r} {text.count(there)} times: mend this test"
            path.write_text(text.replace(there, instead))
            code = run(sys.argv[1], folder, sanitizer, "-DSWEEP_TWO_TYPES").returncode
            path.write_text(text)
            print(f"without {what}: exit code {code}")
            if code == 0:
                survivors.append(what)
    assert not survivors, f"nobody noticed that these were missing: {survivors}"


if __name__ == "__main__":
    main()
