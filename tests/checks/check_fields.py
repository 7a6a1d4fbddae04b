#!/usr/bin/env python3
"""docs/grid.md names every axis of schema/fields.def with its default and its values, and no other; the JSON Schema is current;
docs/glossary.md names fields that exist.

An axis stands in two files, its table and docs/grid.md, and in the rooms that use it; a model family in one, and one line.
"""
import re
import sys

import sources

sys.path.insert(0, str(sources.ROOT / "scripts"))
import grid_schema  # noqa: E402

ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
# Beside the rooms that use an axis, its name stands in the table, in a document for people, and in what is made from the table.
WRITTEN = {"schema/fields.def", "docs/grid.md"}
MADE = {"schema/json/grid.schema.json", "docs/fields.md"}
CONSUMERS = ("bench_kernels", "worker", "tests", "orchestrator/plan", "orchestrator/predict", "orchestrator/interop")
EXAMPLE = "initial_scale_power"  # the axis of CONTRIBUTING.md, "Example: an axis"
GLOSSARY = "docs/glossary.md"  # words, and the fields that carry them; it need not name an axis
LISTED = re.compile(r"^\| `([\w./]+)` \| ", re.MULTILINE)
ORDINARY = ("hot_percent", "capacity_percent", "vocab_multiple", "prefetch_forward", "prefetch_backward")


def documented():
    """axis -> (default, what its row of docs/grid.md says)"""
    section = (sources.ROOT / "docs" / "grid.md").read_text().partition("## Axes")[2].partition("\n## ")[0]
    return {key: (default.strip(" `"), text)
            for keys, default, text in ROW.findall(section) for key in re.findall(r"`(\w+)`", keys)}


def problems_of(axis, row):
    if row is None:
        yield f"axis {axis.key} is absent from docs/grid.md"
        return
    default = axis.default.strip('"').replace("std::nullopt", "none")
    if row[0] != default:
        yield f"axis {axis.key}: default {default} in schema/fields.def, {row[0]} in docs/grid.md"
    for value in axis.values:
        if f"`{value}`" not in row[1] and value != axis.default.strip('"'):
            yield f"axis {axis.key}: docs/grid.md does not name its value `{value}`"


def places_of(key):
    """Files outside the consumers of an axis and the records of decisions and measurements that name it."""
    word = re.compile(rf"\b{key}\b")
    shown = {path: path.relative_to(sources.ROOT).as_posix() for path in sources.files(".h", ".cpp", ".def", ".md", ".json", ".sql", ".js")}
    return {name for path, name in shown.items()
            if not name.startswith((*CONSUMERS, "docs/adr", "docs/measurements", GLOSSARY, "CHANGELOG")) and word.search(path.read_text(errors="replace"))}


def example_problems():
    """CONTRIBUTING's list of the files that name the example is what the sources hold."""
    section = (sources.ROOT / "CONTRIBUTING.md").read_text().partition("### Example: an axis")[2].partition("\n## ")[0]
    listed = set(LISTED.findall(section))
    word = re.compile(rf"\b{EXAMPLE}\b")
    found = set()
    for path in sources.files():
        shown = path.relative_to(sources.ROOT).as_posix()
        if shown.startswith(("docs/adr/", GLOSSARY, "tests/checks/", "tests/fuzz/corpus/")) or shown in ("CHANGELOG.md", "CONTRIBUTING.md"):
            continue
        if word.search(path.read_text(errors="replace")):
            found.add(shown)
    for path in sorted(listed ^ found):
        yield f"CONTRIBUTING.md, Example: an axis: {path} {'names' if path in found else 'does not name'} {EXAMPLE}"


def glossary_problems():
    """Each field that the glossary names exists."""
    keys = set(re.findall(r"^- `(\w+)` \(", (sources.ROOT / "docs" / "fields.md").read_text(), re.MULTILINE))
    for carriers in re.findall(r"Carried by ((?:.+\n)(?:  .+\n)*)", (sources.ROOT / GLOSSARY).read_text()):
        for key in re.findall(r"`(\w+)`", carriers):
            if key not in keys:
                yield f"{GLOSSARY}: {key} is no axis, metric or column (docs/fields.md)"


def family_places(name):
    """Sources of the program that name a model family."""
    word = re.compile(rf"\b(?:k?{name.capitalize()}|{name})\b(?! \d)")
    rooms = ("bench_kernels/", "orchestrator/", "schema/", "worker/")
    shown = {path: path.relative_to(sources.ROOT).as_posix() for path in sources.files(".h", ".cpp")}
    return {at for path, at in shown.items() if at.startswith(rooms) and word.search(path.read_text())}


def main():
    table, rows = grid_schema.axes(of_workload=True), documented()
    problems = [problem for axis in table for problem in problems_of(axis, rows.get(axis.key))]
    problems += [f"docs/grid.md: no axis '{key}' in schema/fields.def" for key in rows.keys() - {axis.key for axis in table}]
    for key in ORDINARY:
        if (places := places_of(key)) != WRITTEN | MADE:
            problems.append(f"axis {key} stands in {sorted(places)}, not in {sorted(WRITTEN | MADE)}: other places follow the table")
    problems += [*example_problems(), *glossary_problems()]
    # CONTRIBUTING's example of a family: its file and its line.
    shape = "bench_kernels/shape/"
    if (places := family_places("gemma")) != {shape + "families/gemma.cpp", shape + "families.cpp"}:
        problems.append(f"the family gemma is named in {sorted(places)}: other code asks the table of families (shape/family.h)")
    text = grid_schema.SCHEMA.read_text()
    if grid_schema.renewed(text) != text:
        problems.append("schema/json/grid.schema.json is out of date: run scripts/grid_schema.py")
    problems += [f"docs/{path.name}: the settings of a launcher are out of date: run scripts/grid_schema.py"
                 for path in sorted((sources.ROOT / "docs").glob("*.md")) if grid_schema.renewed_document(path.read_text()) != path.read_text()]
    sources.finish(problems, len(table))


if __name__ == "__main__":
    main()
