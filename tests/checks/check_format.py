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
    done = subprocess.run([program, "--dry-run", "-Werror", *map(str, paths)], capture_output=True, text=True)
    wrong = {line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line}
    problems = [f"{path}: not formatted; run clang-format -i on it" for path in sorted(wrong)]
    if done.returncode and not problems:
        problems.append(done.stderr)
    sources.finish(problems, len(paths))


if __name__ == "__main__":
    main()
