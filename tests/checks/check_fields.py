#!/usr/bin/env python3
"""docs/grid.md names every axis of schema/fields.def with its default, and no other."""
import re

import sources

AXIS = re.compile(r'^AXIS\(\w+, (\w+), ([^,]+), ', re.MULTILINE)
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", re.MULTILINE)


def main():
    table = {key: default.strip('"').replace("std::nullopt", "none")
             for key, default in AXIS.findall((sources.ROOT / "schema" / "fields.def").read_text())}
    section = (sources.ROOT / "docs" / "grid.md").read_text().partition("## Axes")[2].partition("\n## ")[0]
    documented = {key: default.strip(" `") for keys, default in ROW.findall(section) for key in re.findall(r"`(\w+)`", keys)}
    problems = [f"axis {key}: default {default} in schema/fields.def, {documented.get(key, 'absent')} in docs/grid.md"
                for key, default in table.items() if documented.get(key) != default]
    problems += [f"docs/grid.md: no axis '{key}' in schema/fields.def" for key in documented.keys() - table.keys()]
    sources.finish(problems, len(table))


if __name__ == "__main__":
    main()
