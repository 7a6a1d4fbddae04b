#!/usr/bin/env python3
"""check_readme.py BIN: the examples of the documents run as they stand there.

In a ```console block every line that starts with "$ " is a command; the lines below it are what it prints, shown for the
reader and not compared (numbers differ from machine to machine). "# exit N" behind a command states its exit code, else
it must be 0. Commands of one document run in order in one scratch folder that holds sweeps/ and scripts/ of the
repository, with BIN on the PATH. Other blocks (```sh) are not run: they install, or need a cluster.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import sources

DOCUMENTS = ["README.md", "docs/grid.md", "docs/import.md", "docs/heatmap.md", "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands_of(text):
    """(command, expected exit code) of each `$ ` line; a trailing backslash continues on the next line."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                stated = re.search(r"#\s*exit\s+(\d+)\s*$", line)
                yield line[2:], int(stated.group(1)) if stated else 0


def run(command, folder, path):
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "COLUMNS": "120"}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=600, stdin=subprocess.DEVNULL)


def main():
    problems, looked_at = [], 0
    for document in DOCUMENTS:
        with tempfile.TemporaryDirectory(prefix="sweep-readme-") as name:
            folder = pathlib.Path(name)
            for linked in ("sweeps", "scripts"):
                (folder / linked).symlink_to(sources.ROOT / linked)
            for command, expected in commands_of((sources.ROOT / document).read_text()):
                looked_at += 1
                done = run(command, folder, sys.argv[1])
                if done.returncode != expected:
                    problems.append(f"{document}: $ {command}\n  exit {done.returncode}, stated {expected}\n"
                                    f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    sources.finish(problems, looked_at)


if __name__ == "__main__":
    main()
