#!/usr/bin/env python3
"""The decision records have their form, supersede each other on both sides, and their index is up to date."""
import sys

import sources

sys.path.insert(0, str(sources.ROOT / "scripts"))
import adr_index  # noqa: E402


def one_sided() -> list[str]:
    """The problem of a record that another one supersedes without the other's knowing: there must be one."""
    text = "# 0001. A\n\n- Status: superseded by [0002](0002-b.md)\n- Date: 2026-01-01\n\n" + "\n".join(adr_index.SECTIONS)
    old = adr_index.Record("0001-a.md", "0001", "A", "2026-01-01", "superseded by [0002](0002-b.md)", text)
    new = old._replace(file="0002-b.md", number="0002", status="accepted")
    return adr_index.problems_of(old, {old.file: old, new.file: new})


def main() -> None:
    found = adr_index.records()
    problems = adr_index.all_problems(found)
    if len(one_sided()) != 1:
        problems.append("a supersession that only one side states was not found")
    sources.finish(problems, len(found))


if __name__ == "__main__":
    main()
