"""Plans and runs."""
from __future__ import annotations

import collections.abc
import contextlib
import html
import json
import os
import signal
import subprocess
import sys
import tempfile
import typing
import warnings

from . import _answers, _frames
from ._answers import Path, database
from ._programs import SweepError, ask, error_of, program

Grid = typing.Union[Path, "collections.abc.Mapping[str, typing.Any]"]


def grid_word(grid: Grid) -> tuple[str, str]:
    """How `sweep` is given a grid: a path, or standard input and its text. JSON is YAML too; paths in it count from here."""
    if isinstance(grid, collections.abc.Mapping):
        return "-", json.dumps(grid)
    path = os.fspath(grid)
    return (os.path.join(".", path) if path.startswith("-") else path), ""


def _shown(value: float | None, unit: float = 1) -> str:
    return "" if value is None else f"{value / unit:.1f}"


class Plan(collections.abc.Sequence):
    """The trials of a grid in the order in which they would run: dictionaries with id, admitted, the rule and reason of a
    pruned one, predicted_bytes (of the fullest rank), predicted_ms (a step) and predicted_seconds (the whole trial)."""

    def __init__(self, name: str, trials: list[dict[str, typing.Any]]):
        self.name, self.trials = name, trials

    def __getitem__(self, at: typing.Any) -> typing.Any:
        return self.trials[at]

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def admitted(self) -> list[dict[str, typing.Any]]:
        """Those that would run."""
        return [each for each in self.trials if each["admitted"]]

    @property
    def untimed(self) -> int:
        """How many would run of which nothing predicts the time."""
        return sum(each["predicted_seconds"] is None for each in self.admitted)

    @property
    def predicted_seconds(self) -> float | None:
        """Of all trials that would run, one after the other, without the untimed ones; None: all are untimed."""
        if self.untimed and self.untimed == len(self.admitted):
            return None
        return sum(each["predicted_seconds"] or 0.0 for each in self.admitted)

    def __repr__(self) -> str:
        seconds = self.predicted_seconds
        time = "of unknown time before the first result" if seconds is None else \
            f"{'at least ' if self.untimed else ''}{seconds:.0f} s predicted one after the other"
        untimed = f", {self.untimed} trials of unknown time" if self.untimed and seconds is not None else ""
        return f"{self.name}: {len(self.admitted)} of {len(self)} trials would run, {time}{untimed}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(each['id'])}</td><td>{'runs' if each['admitted'] else html.escape(each.get('rule') or 'pruned')}</td>"
            f"<td>{_shown(each.get('predicted_bytes'), 2**30)}</td><td>{_shown(each.get('predicted_ms'))}</td>"
            f"<td>{html.escape(each.get('reason') or '')}</td></tr>" for each in self.trials[:200])
        more = f"<p>and {len(self) - 200} more</p>" if len(self) > 200 else ""
        return (f"<p>{html.escape(repr(self))}</p><table><tr><th>trial</th><th>plan</th><th>predicted GiB</th><th>predicted ms a step</th>"
                f"<th>reason</th></tr>{rows}</table>{more}")


class Run:
    """A sweep in its database: what `run` gives."""

    def __init__(self, sweep: str, db: str):
        self.sweep, self.db = sweep, db

    def results(self, columns: collections.abc.Sequence[str] | None = None, **options: typing.Any) -> typing.Any:
        """As `sweep_bench.results`."""
        return _frames.results(self.db, self.sweep, columns, **options)

    def best(self, **options: typing.Any) -> list[dict[str, typing.Any]]:
        """As `sweep_bench.best`."""
        return _answers.best(self.sweep, db=self.db, **options)

    def explain(self, trial: str) -> dict[str, typing.Any]:
        """As `sweep_bench.explain`."""
        return _answers.explain(trial, self.sweep, db=self.db)

    def heatmap(self, **options: typing.Any) -> _answers.Page:
        """As `sweep_bench.heatmap`."""
        return _answers.heatmap(self.sweep, db=self.db, **options)

    def report(self, **options: typing.Any) -> _answers.Page:
        """As `sweep_bench.report`."""
        return _answers.report(self.sweep, db=self.db, **options)

    def status(self) -> dict[str, typing.Any]:
        """Counts by outcome, the best so far, who runs it, GPU-hours."""
        return ask("status", self.sweep, db=self.db)

    @property
    def answered(self) -> bool:
        """Whether every trial has an answer by now. False too where no sweep is there yet: a job may not have begun."""
        try:
            status = self.status()
        except SweepError as error:
            if error.kind != "not_found":
                raise
            return False
        failed = sum(count for outcome, count in status["outcomes"].items() if outcome not in ("ok", "oom", "unsupported", "pruned"))
        return not (status["pending"] or status["running"] or failed)

    def __repr__(self) -> str:
        try:
            state = "every trial has an answer" if self.answered else "some trials have no answer"
        except SweepError as error:
            state = str(error)
        return f"<sweep {self.sweep} in {self.db}: {state}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.heatmap()._repr_html_()}"


def plan(grid: Grid, *, db: Path | None = None) -> Plan:
    """What would run of a grid (a file, or a mapping of the same keys), in which order, and what is pruned and why.
    Nothing is started. Raises SweepError where the grid is wrong."""
    word, text = grid_word(grid)
    done = subprocess.run([program("sweep"), "plan", word, "--json", f"--db={database(db)}"], input=text, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise error_of(done)
    trials = [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]  # at least one
    return Plan(trials[0]["sweep"], trials)


def run(grid: Grid, *, db: Path | None = None, rehearse: bool = False, yes: bool = False, progress: bool = True,
        options: collections.abc.Sequence[str] = ()) -> Run:
    """Runs a grid to its end, and again: what has no result yet. A bar shows the progress, in terminals and notebooks.

    db: the results database (a file). rehearse: on phantom GPUs of this machine, without a real one; the results are
    kept as the sweep NAME.rehearsal. yes: do not stop where more GPU-hours are predicted than the site confirms unasked.
    options: further words of `sweep run`, as ["--on", "slurm"]. Ctrl-C ends the run as it ends the command; the same call
    goes on. Raises SweepError where nothing could run.
    """
    if {"-h", "--help"} & set(options):
        raise SweepError("--help runs nothing; `sweep run --help` shows what can be given", "invalid_value")
    word, text = grid_word(grid)
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as begun, tempfile.TemporaryFile("w+") as told:
        given.write(text)
        given.seek(0)
        words = [program("sweep"), "run", word, f"--db={database(db)}", "--quiet", "--json", *(["--rehearse"] if rehearse else []),
                 *(["--yes"] if yes else []), *options]
        # A group of its own: Ctrl-C comes through us, once.
        process = subprocess.Popen(words, stdin=given, stdout=begun, stderr=told, start_new_session=True)
        code = _follow(process, begun, progress)
        told.seek(0)
        said, sweep = told.read(), _begun(begun)
    if code == 130:
        raise KeyboardInterrupt("interrupted; the same call goes on")
    if code not in (0, 1) or sweep is None:
        raise error_of(subprocess.CompletedProcess(words, code, "", said))
    return Run(sweep["sweep"], sweep["db"])


def _begun(begun: typing.IO[typing.Any]) -> dict[str, str] | None:
    """The line of a run with --json: its sweep and database. None: it has not begun."""
    line = os.pread(begun.fileno(), 1 << 20, 0)  # the run writes at the offset that reading would move
    return json.loads(line) if line.endswith(b"\n") else None


def _follow(process: subprocess.Popen[typing.Any], begun: typing.IO[typing.Any], progress: bool) -> int:
    bar = sweep = None
    while process.returncode is None:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5 if progress else None)
            sweep = sweep or _begun(begun)
            if sweep is not None and progress:
                bar = bar or _bar(sweep["sweep"])
                with contextlib.suppress(SweepError):  # the database may not be there yet
                    _draw(bar, ask("status", sweep["sweep"], db=sweep["db"]))
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
    if bar is not None:
        bar.close()
    return process.returncode


def _draw(bar: typing.Any, status: dict[str, typing.Any]) -> None:
    total = status["total"] - status["outcomes"].get("pruned", 0)
    bar.total, bar.n = total, max(0, total - status["pending"] - status["running"])
    failed = {word: count for word, count in status["outcomes"].items() if count and word not in ("ok", "pruned")}
    bar.set_postfix({"ok": status["outcomes"].get("ok", 0), **failed}, refresh=False)
    bar.refresh()


class _PlainBar:
    """Where tqdm is not installed: a line on standard error, redrawn on a terminal."""

    def __init__(self, name: str):
        self.name, self.total, self.n, self.note, self.shown = name, 0, 0, "", ""

    def set_postfix(self, values: dict[str, int], refresh: bool = False) -> None:
        self.note = ", ".join(f"{key} {value}" for key, value in values.items())

    def refresh(self) -> None:
        line = f"{self.name}: {self.n} of {self.total} trials; {self.note}"
        if line != self.shown:
            print(("\r\x1b[K" if sys.stderr.isatty() else "") + line, end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)
        self.shown = line

    def close(self) -> None:
        if sys.stderr.isatty() and self.shown:
            print(file=sys.stderr)


def _bar(name: str) -> typing.Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tqdm's, in a notebook without ipywidgets: the bar is of text then
            from tqdm.auto import tqdm
    except ImportError:
        return _PlainBar(name)
    return tqdm(desc=name, unit="trial", total=0)
