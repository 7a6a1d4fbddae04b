"""python -m sweep_bench FORMAT FILE DATABASE SWEEP [COLUMN,...]: results as a Parquet or Arrow file. `sweep export parquet` calls it."""
from __future__ import annotations

import importlib
import os
import sys

from ._frames import results
from ._programs import SweepError


def main(kind: str, file: str, db: str, sweep: str, columns: str = "") -> None:
    table = results(db, sweep, columns.split(",") if columns else None, library="pyarrow")
    unfinished = f"{file}.{os.getpid()}"
    if kind == "parquet":
        importlib.import_module("pyarrow.parquet").write_table(table, unfinished, compression="zstd")
    else:
        importlib.import_module("pyarrow.feather").write_feather(table, unfinished, compression="zstd")
    os.replace(unfinished, file)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (SweepError, OSError) as error:
        sys.exit(f"sweep: {error}")
