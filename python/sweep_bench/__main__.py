"""python -m sweep_bench FORMAT FILE DATABASE SWEEP [COLUMN,...]: results as a Parquet or Arrow file. `sweep export parquet` calls it.
Exit code 0: written; 3: no pyarrow; 4: the disk is full; else another error."""
from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys

from ._frames import results
from ._programs import SweepError


def main(kind: str, file: str, db: str, sweep: str, columns: str = "") -> None:
    table = results(db, sweep, columns.split(",") if columns else None, library="pyarrow")
    file = os.path.realpath(file)  # the target of a link is replaced, as by every other format
    unfinished = f"{file}.{os.getpid()}"
    try:
        if kind == "parquet":
            importlib.import_module("pyarrow.parquet").write_table(table, unfinished, compression="zstd")
        else:
            importlib.import_module("pyarrow.feather").write_feather(table, unfinished, compression="zstd")
        os.replace(unfinished, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def code_of(error: Exception) -> int:
    """The exit code for what main raised."""
    if isinstance(error, ImportError) or (isinstance(error, SweepError) and error.kind == "unsupported"):
        return 3
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return 4 if full or (isinstance(error, SweepError) and error.kind == "disk_full") else 2


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (SweepError, OSError, ImportError) as error:
        print(f"sweep: {error}", file=sys.stderr)
        sys.exit(code_of(error))
