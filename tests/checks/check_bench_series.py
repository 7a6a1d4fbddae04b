#!/usr/bin/env python3
"""The series of benchmark figures: scripts/bench_series keeps every row it is given, refuses what is no figure, and draws every row."""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import sources

SCRIPT = sources.ROOT / "scripts" / "bench_series"
FIGURES = [{"figure": "c", "name": "grid <expansion>", "value": 4.4e6, "unit": "combinations/s", "goal": ">= 1e6", "met": True, "runs": [1, 2]},
           {"figure": "e", "name": "start", "value": 2.25, "unit": "ms"}]
CIRCLE = "{http://www.w3.org/2000/svg}circle"


def run(command, series, text=""):
    return subprocess.run([sys.executable, SCRIPT, command, "--series", series], input=text, capture_output=True, text=True)


def main():
    problems = []
    with tempfile.TemporaryDirectory(prefix="sweep-series-") as folder:
        series = pathlib.Path(folder) / "series.csv"
        if run("draw", series).returncode != 2:
            problems.append("a series without rows must exit 2")
        for _ in range(3):
            done = run("add", series, "".join(json.dumps(figure) + "\n" for figure in FIGURES))
            if done.returncode:
                problems.append(f"add exits {done.returncode}: {done.stderr}")
        before = series.read_bytes()
        for wrong in ("words\n", '{"figure": "c", "name": "x"}\n', '{"figure": "c", "name": "x", "value": "fast"}\n'):
            if run("add", series, json.dumps(FIGURES[0]) + "\n" + wrong).returncode != 2 or series.read_bytes() != before:
                problems.append(f"{wrong.strip()} must be refused, and nothing of that run kept")
        with series.open(newline="") as file:
            rows = list(csv.DictReader(file))
        values = [(row["figure"], row["name"], float(row["value"])) for row in rows]
        if values != [(figure["figure"], figure["name"], figure["value"]) for figure in FIGURES] * 3:
            problems.append(f"the series holds {values}")
        if any(not row[key] for row in rows for key in ("date", "commit", "machine")):
            problems.append("a row lacks its date, commit or machine")
        circles = list(ElementTree.parse(series.with_suffix(".svg")).getroot().iter(CIRCLE))
        machines = len({row["machine"] for row in rows})
        if len(circles) != len(rows) + machines:
            problems.append(f"{len(circles)} circles drawn, {len(rows)} rows and {machines} machines expected")
    sources.finish(problems, 3 + len(FIGURES) * 3)


if __name__ == "__main__":
    main()
