"""Results as data frames, by whichever library is there."""
from __future__ import annotations

import collections.abc
import importlib
import importlib.util
import os
import pathlib
import sqlite3
import typing

from ._answers import Path, database
from ._programs import SweepError

_LIBRARIES = ("polars", "pandas", "pyarrow")
_BLOCK = 65536  # rows that are turned into columns at once


def results(db: Path | None = None, sweep: str | None = None, columns: collections.abc.Sequence[str] | None = None, *,
            library: str | None = None) -> typing.Any:
    """Every trial with its axes, outcome and metrics, a row each (docs/fields.md says which columns, in which units).

    db: the database; None: $SWEEP_DB, else sweep.db. sweep: its name; None: all sweeps of the file. columns: some of them,
    which is quicker; None: all. library: "polars", "pandas", "pyarrow", or "columns" for a dictionary of lists; None: the
    first of these three that this Python has imported, else that is installed, else "columns". What was not measured is
    null (NaN in pandas).
    """
    names, values = _read(database(db), sweep, columns)
    return _frame(library or _library(), dict(zip(names, values)))


def _library() -> str:
    import sys
    for name in _LIBRARIES:
        if name in sys.modules:
            return name
    return next((name for name in _LIBRARIES if importlib.util.find_spec(name)), "columns")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read(db: str, sweep: str | None, columns: collections.abc.Sequence[str] | None) -> tuple[list[str], list[list[typing.Any]]]:
    if not pathlib.Path(db).is_file():
        raise SweepError(f"there is no database '{db}'; sweep_bench.run makes one", "not_found")
    connection = sqlite3.connect(f"{pathlib.Path(os.path.abspath(db)).as_uri()}?mode=ro", uri=True)
    try:
        wanted = ", ".join(map(_quoted, columns)) if columns is not None else "*"
        where, values = (" WHERE sweep = ?", (sweep,)) if sweep else ("", ())
        cursor = connection.execute(f"SELECT {wanted} FROM results{where}", values)
        names = [each[0] for each in cursor.description]
        out: list[list[typing.Any]] = [[] for _ in names]
        while rows := cursor.fetchmany(_BLOCK):
            for column, part in zip(out, zip(*rows)):
                column.extend(part)
        return names, out
    except sqlite3.Error as error:
        raise SweepError(f"{db}: {error}", "unreadable") from error
    finally:
        connection.close()


def _frame(library: str, data: dict[str, list[typing.Any]]) -> typing.Any:
    if library == "columns":
        return data
    if library not in _LIBRARIES:
        raise SweepError(f"library '{library}' is none of {', '.join(_LIBRARIES)} and columns", "unknown_name")
    module = importlib.import_module(library)
    if library == "pandas":
        return module.DataFrame(data)
    if library == "polars":
        return module.DataFrame(data, strict=False, infer_schema_length=None)
    return module.table(data)
