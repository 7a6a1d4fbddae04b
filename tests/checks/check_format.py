#!/usr/bin/env python3
"""Every C++ file is as clang-format 14 leaves it (the version is pinned: others format differently)."""
import shutil
import subprocess

import sources


def clang_format_14():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and "version 14." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    return sources.skip("clang-format 14 is not installed")


def main():
    program, paths = clang_format_14(), sources.files(".h", ".cpp", ".cu", ".cuh")
    problems = []
    for path in paths:
        done = subprocess.run([program, "--dry-run", "-Werror", str(path)], capture_output=True, text=True)
        if done.returncode:
            problems.append(f"{path.relative_to(sources.ROOT)}: not formatted; run clang-format -i on it")
    sources.finish(problems, len(paths))


if __name__ == "__main__":
    main()
