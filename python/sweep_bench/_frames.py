"""Results as data frames, by whichever library is there."""
from __future__ import annotations

import collections.abc
import importlib.util
import pathlib
import sys
import typing

from . import _columns
from ._answers import Path, database, sweeps
from ._programs import SweepError

_LIBRARIES = ("polars", "pandas", "pyarrow")


def results(db: Path | None = None, sweep: str | None = None, columns: collections.abc.Sequence[str] | None = None, *,
            library: str | None = None) -> typing.Any:
    """Every trial with its axes, outcome and metrics, a row each (docs/fields.md says which columns, in which units). The
    grid's own axes are the last columns; where a sweep lacks an axis of another one, it is null. A name in `columns` must be one of
    every sweep that is read.

    db: the database; None: $SWEEP_DB, else sweep.db. sweep: its name; None: all sweeps of the file. columns: some of them,
    which is quicker; None: all. library: "polars", "pandas", "pyarrow", or "columns" for a dictionary of lists; None: the
    first of these three that this Python has imported, else that is installed, else "columns". What was not measured is
    null (NaN in pandas).
    """
    library = library or _library()
    if library not in (*_LIBRARIES, "columns"):
        raise SweepError(f"library '{library}' is none of {', '.join(_LIBRARIES)} and columns", "unknown_name")
    if library != "columns" and importlib.util.find_spec(library) is None:
        raise SweepError(f"{library} is not installed in {sys.executable}: pip install {library}", "unsupported")
    file = database(db)
    if not pathlib.Path(file).is_file():
        raise SweepError(f"there is no database '{file}'; sweep_bench.run makes one", "not_found")
    names = [sweep] if sweep else [each["sweep"] for each in sweeps(file)]
    if not names:
        raise SweepError(f"{file} holds no sweep", "not_found")
    return _columns.frame(library, [_columns.read(file, each, columns) for each in names])


def _library() -> str:
    for name in _LIBRARIES:
        if name in sys.modules:
            return name
    return next((name for name in _LIBRARIES if importlib.util.find_spec(name)), "columns")
