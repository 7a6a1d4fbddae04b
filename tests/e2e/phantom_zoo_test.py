#!/usr/bin/env python3
"""phantom_zoo_test.py BIN_DIR: each program of trainers/phantom_zoo.py, rehearsed on phantom GPUs, ends `ok`, or `unsupported` with the name
of the call that a phantom does not answer. docs/measurements/2026-11-29-zoo.md has the table."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import database

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "trainers"))
import phantom_zoo  # noqa: E402  (found by the line above)

BIN = pathlib.Path(sys.argv[1]).resolve()
# What a phantom does not answer: recurrent networks of cuDNN, cuFFT, cuSOLVER.
UNANSWERED = {"lstm": "cudnn", "gru": "cudnn", "fft": "cufft", "svd": "cusolver", "inverse": "cusolver"}
GRID = """name: zoo{ranks}
workload:
  command: {command}
  axes: {{case: {{type: text, default: none}}}}
base: {{hardware: h100-sxm-80gb, nodes: 1, gpus_per_node: {ranks}, dp: {ranks}}}
grid: {{case: {cases}}}
measure: {{warmup_steps: 1, steps: 3}}
limits: {{retries_crash: 0}}
"""


def rehearsed(folder, cases, ranks):
    """(case, outcome, reason, peak bytes) of each."""
    command = [sys.executable, "-m", "sweep_trial", str(HERE / "trainers" / "phantom_zoo.py"), "{case}"]
    grid, db = folder / f"zoo{ranks}.yaml", folder / f"zoo{ranks}.db"
    grid.write_text(GRID.format(command=json.dumps(command), cases=json.dumps(cases), ranks=ranks))
    subprocess.run([BIN / "sweep", "run", grid, "--rehearse", "--db", db, "--quiet"], timeout=1500, check=False,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})
    return database.rows(db, "SELECT json_extract(labels, '$.case'), outcome, reason, peak_reserved_bytes FROM results")


def judge(name, outcome, reason, peak):
    library = UNANSWERED.get(name)
    if library is None:
        return outcome == "ok" and peak > 0
    return outcome == "unsupported" and library in reason.lower()


with tempfile.TemporaryDirectory() as there:
    rows = [row for cases, ranks in ((phantom_zoo.ALONE, 1), (phantom_zoo.ON_TWO_RANKS, 2))
            for row in rehearsed(pathlib.Path(there), list(cases), ranks)]
for row in rows:
    print(*row, sep="\t")
wrong = [row for row in rows if not judge(*row)]
assert len(rows) == len(phantom_zoo.ALONE) + len(phantom_zoo.ON_TWO_RANKS) and not wrong, wrong
