#!/usr/bin/env python3
"""Each decision record has its form, and a line of docs/adr/README.md with its number and title."""
import re

import sources

FOLDER = sources.ROOT / "docs" / "adr"
HEAD = re.compile(r"# (\d{4})\. (.+)\n\n- Status: accepted\n- Date: \d{4}-\d\d-\d\d\n")
SECTIONS = ["## Context", "## Decision", "## Consequences"]


def problems_of(path, index):
    text = path.read_text()
    head = HEAD.match(text)
    if not head or not path.name.startswith(head[1] + "-"):
        yield "its head must be '# NNNN. Title' with the number of the file's name, '- Status: accepted' and '- Date: YYYY-MM-DD'"
    elif f"- {head[1]}: [{head[2]}]({path.name})" not in index:
        yield f"docs/adr/README.md has no line '- {head[1]}: [{head[2]}]({path.name})'"
    if re.findall(r"^## .*$", text, re.MULTILINE) != SECTIONS:
        yield f"its sections must be {', '.join(SECTIONS)}, in this order"


def main():
    records, index = sorted(FOLDER.glob("[0-9]*.md")), re.sub(r"\n  ", " ", (FOLDER / "README.md").read_text())
    sources.finish([f"docs/adr/{path.name}: {problem}" for path in records for problem in problems_of(path, index)], len(records))


if __name__ == "__main__":
    main()
