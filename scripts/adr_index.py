#!/usr/bin/env python3
"""adr_index.py [--check]: writes docs/adr/README.md, the index of the decision records, from the records themselves.

--check writes nothing; it prints what is wrong with records and index, and exits 1 if anything is.
"""
import pathlib
import re
import sys
from typing import NamedTuple

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs" / "adr"
TITLE = re.compile(r"# (\d{4})\. (.+)\n")
STATUS = re.compile(r"^- Status: (.+)$", re.MULTILINE)
DATE = re.compile(r"^- Date: (\d{4}-\d\d-\d\d)$", re.MULTILINE)
SUPERSEDED_BY = re.compile(r"^superseded by \[(\d{4})\]\(([^)]+)\)$")
SUPERSEDES = re.compile(r"supersedes ((?:\[\d{4}\]\([^)]+\)(?:, )?)+)")
SECTIONS = ["## Context", "## Decision", "## Consequences"]
HEAD = """# Decision records

One file per decision. `scripts/adr_index.py` writes this list; `checks.adr` compares it with the files.
To add one: copy the form of a recent record, take the next number, and run the script. Smaller choices are lines of [why](../why.md).

| number | decision | date | status |
|---|---|---|---|
"""


class Record(NamedTuple):
    file: str
    number: str
    title: str
    date: str
    status: str
    text: str


def read(path: pathlib.Path) -> Record:
    text = path.read_text()
    title, status, date = TITLE.match(text), STATUS.search(text), DATE.search(text)
    return Record(path.name, title[1] if title else "", title[2] if title else "", date[1] if date else "",
                  status[1] if status else "", text)


def records() -> list[Record]:
    return [read(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]


def index(found: list[Record]) -> str:
    rows = [f"| {r.number} | [{r.title}]({r.file}) | {r.date} | {r.status} |" for r in found]
    return HEAD + "\n".join(rows) + "\n"


def superseded(record: Record) -> list[str]:
    """The files that this record says it supersedes."""
    match = SUPERSEDES.search(record.status)
    return re.findall(r"\]\(([^)]+)\)", match[1]) if match else []


def problems_of(record: Record, by_file: dict[str, Record]) -> list[str]:
    problems = []
    if not record.number or not record.file.startswith(record.number + "-"):
        problems.append("its first line must be '# NNNN. Title' with the number of the file's name")
    if not record.date:
        problems.append("it has no line '- Date: YYYY-MM-DD'")
    by = SUPERSEDED_BY.match(record.status)
    if not by and not record.status.startswith("accepted"):
        problems.append(f"its status '{record.status}' is neither 'accepted' nor 'superseded by [NNNN](file)'")
    if by and (by[2] not in by_file or record.file not in superseded(by_file[by[2]])):
        problems.append(f"it is superseded by {by[2]}, which does not say that it supersedes {record.file}")
    for old in superseded(record):
        if old not in by_file or f"({record.file})" not in by_file[old].status:
            problems.append(f"it supersedes {old}, whose status does not say so")
    if re.findall(r"^## .*$", record.text, re.MULTILINE) != SECTIONS:
        problems.append(f"its sections must be {', '.join(SECTIONS)}, in this order")
    return [f"docs/adr/{record.file}: {problem}" for problem in problems]


def all_problems(found: list[Record]) -> list[str]:
    by_file = {record.file: record for record in found}
    problems = [problem for record in found for problem in problems_of(record, by_file)]
    numbers = [int(record.number or 0) for record in found]
    if len(set(numbers)) != len(numbers) or 0 in numbers:
        problems.append("docs/adr: each record needs a number of its own")
    target = FOLDER / "README.md"
    if not target.exists() or target.read_text() != index(found):
        problems.append("docs/adr/README.md is out of date; run scripts/adr_index.py")
    return problems


def main() -> int:
    found = records()
    if "--check" not in sys.argv[1:]:
        (FOLDER / "README.md").write_text(index(found))
        return 0
    problems = all_problems(found)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
