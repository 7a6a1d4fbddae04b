"""The programs of this package, and how they are put on the PATH."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing

PACKAGE = pathlib.Path(__file__).resolve().parent


class SweepError(RuntimeError):
    """A command of `sweep` refused. `kind` is one of those in docs/json.md; `code` is the exit code."""

    def __init__(self, message: str, kind: str = "failed", code: int = 2):
        super().__init__(message)
        self.kind, self.code = kind, code


def program(name: str) -> str:
    """The path of a program: $SWEEP_BIN, else the one of this package, else the one on the PATH."""
    folder = os.environ.get("SWEEP_BIN")
    if folder:
        given = pathlib.Path(folder) / name
        if not os.access(given, os.X_OK):
            raise SweepError(f"SWEEP_BIN is {folder}: there is no program {name} in it; name the folder of the programs, or unset it", "not_found")
        return str(given)
    own = PACKAGE / "bin" / name
    if own.exists():
        return str(own)
    found = shutil.which(name)
    if found is None:
        raise SweepError(f"{name}: neither in {own.parent} nor on the PATH; install the wheel sweep-bench"
                         f"{'-rank' if name == 'sweep-rank' else ''}, or set SWEEP_BIN to the folder of the programs", "not_found")
    return found


def words_of(command: str, *given: object, **options: object) -> list[str]:
    """A call of `sweep`. given: what it works on, which never counts as an option although it may begin with `-`. options: of their
    names; None or an empty text: not given."""
    named = [f"--{name}={value}" for name, value in options.items() if value not in (None, "")]
    return [program("sweep"), command, *named, "--json", "--", *map(str, given)]


def ask(command: str, *given: object, **options: object) -> typing.Any:
    """What a command prints with --json. Exit code 1 is an answer: some trial has none."""
    done = subprocess.run(words_of(command, *given, **options), capture_output=True, text=True)
    try:
        said = json.loads(done.stdout) if done.stdout.strip() else None
    except json.JSONDecodeError:
        said = None
    if done.returncode not in (0, 1) or said is None:
        raise error_of(done)
    return said


def text(command: str, *given: object, **options: object) -> str:
    """What a command prints that has no JSON but its errors."""
    done = subprocess.run(words_of(command, *given, **options), capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise error_of(done)
    return done.stdout


def error_of(done: subprocess.CompletedProcess[str]) -> SweepError:
    """Of a command that failed: with --json its last line on standard error is an object (docs/json.md)."""
    said = done.stderr.strip()
    try:
        error = json.loads(said.rsplit("\n", 1)[-1])["error"]
        return SweepError(error["message"], error["kind"], done.returncode)
    except (ValueError, KeyError, TypeError):
        return SweepError(said.removeprefix("sweep: ") or f"sweep ended with exit code {done.returncode}", "failed", done.returncode)


def _become(name: str) -> typing.NoReturn:
    try:
        path = program(name)
    except SweepError as error:
        sys.exit(str(error))
    os.environ.setdefault("SWEEP_PYTHON", sys.executable)  # `sweep export parquet` asks this module
    os.execv(path, [path, *sys.argv[1:]])


def sweep() -> typing.NoReturn:
    _become("sweep")


def agent() -> typing.NoReturn:
    _become("sweep-agent")


def rank() -> typing.NoReturn:
    _become("sweep-rank")
