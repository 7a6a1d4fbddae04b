"""Reads what `sweep export columns` writes (docs/exports.md), and makes data frames of it without a Python object for each number."""
from __future__ import annotations

import array
import collections.abc
import importlib
import json
import math
import subprocess
import typing

from ._programs import SweepError, error_of, words_of

Frame = typing.Any


class Column:
    """One column: codes and their values, or numbers with NaN where there is none."""

    def __init__(self, head: dict[str, typing.Any], data: bytes):
        self.name: str = head["name"]
        self.type: str = head["type"].removeprefix("opt_")  # text, i64, f64, flag
        self.values: list[typing.Any] | None = head.get("values")
        if self.type == "flag" and self.values is not None:
            self.values = [None if each is None else bool(each) for each in self.values]
        self.whole: bool = self.type == "i64"
        self.data = data

    def items(self) -> list[typing.Any]:
        """Python values, None for null."""
        if self.values is not None:
            codes: array.array[int] = array.array("I")
            codes.frombytes(self.data)
            return [self.values[code] for code in codes]
        numbers: array.array[float] = array.array("d")
        numbers.frombytes(self.data)
        if self.whole:
            return [None if math.isnan(each) else int(each) for each in numbers]
        return [None if math.isnan(each) else each for each in numbers]


def read(db: str, sweep: str, columns: collections.abc.Sequence[str] | None) -> list[Column]:
    names = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
    if names is not None and (not names or len(set(names)) < len(names)):
        raise SweepError(f"columns is {names}: name at least one column, and each once, or leave it out for all", "invalid_value")
    words = words_of("export", "columns", sweep, db=db, columns=None if names is None else ",".join(names))
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        line = process.stdout.readline()
        head: dict[str, typing.Any] = json.loads(line) if line.endswith(b"\n") else {"rows": 0, "columns": []}
        sizes = [head["rows"] * (8 if each.get("values") is None else 4) for each in head["columns"]]
        out = [Column(each, process.stdout.read(size)) for each, size in zip(head["columns"], sizes)]
        said = process.stderr.read()
    if process.wait() != 0 or not head["columns"]:
        raise error_of(subprocess.CompletedProcess(words, process.returncode, "", said.decode()))
    return out


def frame(library: str, parts: list[list[Column]]) -> Frame:
    """parts: the same columns of one sweep after the other."""
    if library == "columns":
        return _lists(parts)
    return {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}[library](parts)


def _lists(parts: list[list[Column]]) -> dict[str, list[typing.Any]]:
    names = list(dict.fromkeys(column.name for part in parts for column in part))  # a sweep's own axes are its own
    out: dict[str, list[typing.Any]] = {name: [] for name in names}
    for part in parts:
        found = {column.name: column.items() for column in part}
        rows = len(next(iter(found.values())))
        for name in names:
            out[name] += found.get(name, [None] * rows)
    return out


def _arrow(parts: list[list[Column]]) -> Frame:
    arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
    types = {"text": arrow.string(), "i64": arrow.int64(), "f64": arrow.float64(), "flag": arrow.bool_()}

    def numbers(column: Column) -> Frame:
        found = arrow.Array.from_buffers(arrow.float64(), len(column.data) // 8, [None, arrow.py_buffer(column.data)])
        found = compute.if_else(compute.is_nan(found), None, found)
        return found.cast(arrow.int64()) if column.whole else found

    def array_of(column: Column) -> Frame:
        if column.values is None:
            return numbers(column)
        codes = arrow.Array.from_buffers(arrow.uint32(), len(column.data) // 4, [None, arrow.py_buffer(column.data)])
        return arrow.array(column.values, types[column.type]).take(codes)

    tables = [arrow.table({column.name: array_of(column) for column in part}) for part in parts]
    words = {field.name for table in tables for field in table.schema if field.type == arrow.string()}
    for at, table in enumerate(tables):  # numbers in one sweep, words in another: words
        kinds = [field.with_type(arrow.string()) if field.name in words else field for field in table.schema]
        tables[at] = table.cast(arrow.schema(kinds))
    return arrow.concat_tables(tables, promote_options="permissive")


def _polars(parts: list[list[Column]]) -> Frame:
    polars, numpy = importlib.import_module("polars"), importlib.import_module("numpy")
    types = {"text": polars.String, "i64": polars.Int64, "f64": polars.Float64, "flag": polars.Boolean}

    def series(column: Column) -> Frame:
        if column.values is not None:
            values = polars.Series(column.name, column.values, types[column.type], strict=False)
            return values.gather(numpy.frombuffer(column.data, numpy.uint32)) if column.data else values
        found = polars.Series(column.name, numpy.frombuffer(column.data, numpy.float64)).fill_nan(None)
        return found.cast(polars.Int64) if column.whole else found

    return polars.concat([polars.DataFrame([series(column) for column in part]) for part in parts], how="diagonal_relaxed")


def _pandas(parts: list[list[Column]]) -> Frame:
    pandas, numpy = importlib.import_module("pandas"), importlib.import_module("numpy")

    def values(column: Column) -> Frame:
        some = None in column.values  # type: ignore[operator]
        if column.type == "text":
            return pandas.Series([*column.values, ""]).array[:-1]  # type: ignore[misc]
        types = {"i64": "float64" if some else "int64", "f64": "float64", "flag": "boolean" if some else "bool"}
        return pandas.Series(column.values, dtype=types[column.type]).array

    def series(column: Column) -> Frame:
        if column.values is not None:
            return values(column).take(numpy.frombuffer(column.data, numpy.uint32).astype(numpy.int64))
        found = numpy.frombuffer(column.data, numpy.float64)
        return found.astype(numpy.int64) if column.whole and not numpy.isnan(found).any() else found

    frames = [pandas.DataFrame({column.name: series(column) for column in part}) for part in parts]
    return frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)
