"""What `sweep` answers of a database."""
from __future__ import annotations

import html
import os
import pathlib
import tempfile
import typing

from ._programs import ask, text

Path = typing.Union[str, "os.PathLike[str]"]


def database(db: Path | None) -> str:
    return os.fspath(db) if db is not None else os.environ.get("SWEEP_DB", "sweep.db")


def _of(sweep: str | None) -> list[str]:
    return [sweep] if sweep else []


def sweeps(db: Path | None = None) -> list[dict[str, typing.Any]]:
    """The sweeps of a database: name, kind (measured, rehearsal), trials, answered, ok, last_result (UTC), run_by, question."""
    return ask("list", "sweeps", db=database(db))


def best(sweep: str | None = None, *, by: str | None = None, metric: str | None = None, db: Path | None = None) -> list[dict[str, typing.Any]]:
    """The best configuration of each group, with those that are tied with it, as `sweep best --json` says it.

    sweep: its name; None: the latest that was measured. by: axes that make groups, as "nodes" or "tp,pp". metric: what
    decides; None: tokens_per_s_gpu (tokens a second and GPU), of which more is better, or
    useful_tokens_per_s_gpu where results have padding.
    """
    return ask("best", *_of(sweep), db=database(db), by=by, metric=metric)


def explain(trial: str, sweep: str | None = None, *, db: Path | None = None) -> dict[str, typing.Any]:
    """One trial (the beginning of its id is enough): configuration, the plan's decision, attempts, metrics and evidence.

    Bytes are bytes, times end in their unit (`_ms`, `_s`, `_ns`); null: not measured.
    """
    return ask("explain", trial, *_of(sweep), db=database(db))


class Page:
    """A page of `sweep`, complete in itself. A notebook shows it; `save` writes it to a file."""

    def __init__(self, content: str, title: str):
        self.html, self.title = content, title

    def save(self, path: Path) -> pathlib.Path:
        """Writes the page to a file, which any browser opens without a network."""
        file = pathlib.Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        """In a frame of its own: its styles and scripts stay there."""
        return (f'<iframe title="{html.escape(self.title, quote=True)}" srcdoc="{html.escape(self.html, quote=True)}" '
                'width="100%" height="720" style="border:0" sandbox="allow-scripts allow-downloads"></iframe>')

    def __repr__(self) -> str:
        return f"<{self.title}: {len(self.html)} bytes of HTML; .save(FILE) writes it>"


def _page(command: str, sweep: str | None, **options: object) -> Page:
    with tempfile.TemporaryDirectory(prefix="sweep-page-") as folder:
        file = pathlib.Path(folder) / "page.html"
        text(command, *_of(sweep), output=file, **options)
        return Page(file.read_text(encoding="utf-8"), f"{command} of {sweep or 'the latest sweep'}")


def heatmap(sweep: str | None = None, *, rows: str | None = None, cols: str | None = None, value: str | None = None,
            db: Path | None = None) -> Page:
    """Two axes and one metric, with the best configuration of every cell. None: the two axes that matter most, and
    the metric that best() takes."""
    return _page("heatmap", sweep, db=database(db), rows=rows, cols=cols, value=value)


def report(sweep: str | None = None, *, metric: str | None = None, db: Path | None = None) -> Page:
    """The page that answers the sweep's question: the best, what it costs, what failed, how to run it again."""
    return _page("report", sweep, db=database(db), metric=metric)
