#!/usr/bin/env python3
"""check_ldd.py PROGRAM...: sweep and sweep-agent load neither LibTorch nor a CUDA library."""
import re
import subprocess
import sys

import sources

FORBIDDEN = re.compile(r"\b(libtorch\w*|libc10\w*|libcuda\w*|libnccl\w*|libcudnn\w*)\.so")


def main():
    programs, problems = sys.argv[1:], []
    for program in programs:
        loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for line in loaded.splitlines():
            if FORBIDDEN.search(line):
                problems.append(f"{program} loads {line.strip()}")
            if "not found" in line:
                problems.append(f"{program} lacks {line.strip()}")
    sources.finish(problems, len(programs))


if __name__ == "__main__":
    main()
