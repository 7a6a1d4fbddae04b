#!/usr/bin/env python3
"""check_readme.py BIN: the examples of the documents run as they stand there.

In a ```console block every line that starts with "$ " is a command; the lines below it are what it prints, and each must
be among what it really prints, in this order. Figures differ from machine to machine: a number stands for any number, but counts of
trials and of outcomes must be those shown; "..." stands for whatever follows, on its line or in lines of its own. "# exit N" behind
a command states its exit code, else it must be 0. A ```yaml or ```python block after "save this as `FILE`" is that file.
Commands of one document run in order in one scratch folder that holds sweeps/, scripts/ and examples/ of the repository, with BIN on
the PATH. Other blocks (```sh) are not run: they install, or need a cluster. tests/e2e/tutorials_test.py runs the pages that need more.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import sources

DOCUMENTS = ["README.md", "docs/tutorial.md", "docs/grid.md", "docs/import.md", "docs/heatmap.md", "docs/predict.md", "docs/data.md", "docs/published.md", "CONTRIBUTING.md",
             "examples/zero/README.md", "examples/recompute/README.md", "examples/scaling/README.md"]
SAVED = re.compile(r"[Ss]ave (?:this|it) as `([^`]+)`[^`]*\n\n```(?:yaml|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


COUNTED = re.compile(r"(?<![\w.])(\d+) (?=trials|admitted|pruned|ok\b|oom\b|configurations|results|points|x \d)")
NUMBER = re.compile(r"\b[0-9a-f]*\d[0-9a-f]*(?:\.\d+)?(?:e[-+]?\d+)?[kMGT]?\b|\b[a-f0-9]{8,16}\b")


def commands_of(text):
    """(command, expected exit code, lines shown) of each `$ ` line; a trailing backslash continues on the next line."""
    for block in BLOCK.findall(text):
        command: tuple[str, int, list[str]] | None = None
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                if command:
                    yield command
                stated = re.search(r"#\s*exit\s+(\d+)\s*$", line)
                command = (line[2:], int(stated.group(1)) if stated else 0, [])
            elif command and line.strip(" .│"):
                command[2].append(line)
        if command:
            yield command


def compared(line):
    """The part of a line that must be the same: words, counts; not figures, ids, widths of columns."""
    kept = COUNTED.findall(line)
    line = COUNTED.sub("\0 ", line)
    line = NUMBER.sub("#", re.sub(r"(?<=[A-Z])\d+", "#", line))
    for count in kept:
        line = line.replace("\0", count, 1)
    return " ".join(re.sub(r"─+", "─", line).split())


def not_printed(shown, printed):
    """The first line shown that is not printed behind those before it; None: all are."""
    real = iter([compared(line) for line in re.split(r"[\r\n]", printed)])
    for line in shown:
        start, cut, _ = compared(line).partition("...")
        if not any(one.startswith(start.rstrip()) if cut else one == start for one in real):
            return line
    return None


def run(command, folder, environment):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=600, stdin=subprocess.DEVNULL)


def problems_of(document, path, folder, more=None):
    """What is wrong with the document's examples, run in this folder with the folder `path` before the PATH; how many commands ran."""
    folder, problems, ran = pathlib.Path(folder), [], 0
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "COLUMNS": "120", **(more or {})}
    for linked in ("sweeps", "scripts", "examples"):
        (folder / linked).symlink_to(sources.ROOT / linked)
    text = (sources.ROOT / document).read_text()
    for name, content in SAVED.findall(text):
        file = folder / name.replace("~", environment["HOME"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    for command, expected, shown in commands_of(text):
        ran += 1
        done = run(command, folder, environment)
        if done.returncode != expected:
            problems.append(f"{document}: $ {command}\n  exit {done.returncode}, stated {expected}\n{done.stdout[-2000:]}")
        elif (line := not_printed(shown, done.stdout)) is not None:
            problems.append(f"{document}: $ {command}\n  shows what it does not print (here): {line}\n{done.stdout[-2000:]}")
    return problems, ran


def unknown_options(program):
    """Options that a document gives to a command of sweep which does not take them."""
    known: dict[str, set[str]] = {}
    for path in [*sources.ROOT.glob("*.md"), *sources.ROOT.glob("docs/*.md"), *sources.ROOT.glob("examples/**/*.md")]:
        for command, words in re.findall(r"\bsweep ([a-z]+)((?: [^`\n;|&#()]*)?)", "" if path.name == "CHANGELOG.md" else path.read_text()):
            if command not in known:
                told = run(f"{program} {command} --help", None, dict(os.environ))
                known[command] = set(re.findall(r"--[a-z][a-z-]*", told.stdout)) if told.returncode == 0 else set()
            given = re.findall(r"(?<![\w-])--[a-z][a-z-]*", words.partition(" -- ")[0])
            if known[command] and (unknown := [one for one in given if one not in known[command]]):
                yield f"{path.relative_to(sources.ROOT)}: sweep {command} does not take {' '.join(unknown)}"


def main():
    problems, looked_at = list(unknown_options(pathlib.Path(sys.argv[1]) / "sweep")), 0
    for document in DOCUMENTS:
        with tempfile.TemporaryDirectory(prefix="sweep-readme-") as folder:
            found, ran = problems_of(document, sys.argv[1], folder)
            problems += found
            looked_at += ran
    sources.finish(problems, looked_at)


if __name__ == "__main__":
    main()
