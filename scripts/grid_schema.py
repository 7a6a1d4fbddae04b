#!/usr/bin/env python3
"""grid_schema.py [--check]: writes the axes of schema/json/grid.schema.json from schema/fields.def.

--check writes nothing; it exits 1 if the file is out of date. The list of hardware is left as it is: a unit test compares it with
the catalogue.
"""
import json
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIELDS = ROOT / "schema" / "fields.def"
SCHEMA = ROOT / "schema" / "json" / "grid.schema.json"
AXIS = re.compile(
    r"^AXIS\((?P<type>\w+), (?P<key>\w+), (?P<default>[^,]+), "
    r'(?P<form>any|range)\((?P<arguments>.*?)\), "(?P<unit>[^"]*)", "(?P<sentence>[^"]*)"\)$'
)
CHOICE = re.compile(r'^CHOICE\(\w+, (?P<key>\w+), (?P<default>\w+), "(?P<unit>[^"]*)", "(?P<sentence>[^"]*)", (?P<words>.*)\)$')
WORD = re.compile(r'\((\w+), "(\w+)"(, hidden)?\)')
RENAMED = re.compile(r"^RENAMED_AXIS\((\w+), (\w+)\)$", re.MULTILINE)
SHIFT = re.compile(r"(?:std::int64_t\{)?(\d+)\}? << (\d+)")
ONE = '    "one": {\n      "type": "object",\n      "minProperties": 1,\n      "additionalProperties": false,\n      "properties": {\n'
MANY = ONE.replace('"one"', '"many"')
MODEL = '        "model": {'
SET_BY_WORKLOAD = {"workload", "program"}  # by the section of that name; no grid sets them as axes


class Axis(NamedTuple):
    key: str
    type: str
    default: str
    unit: str
    sentence: str
    values: list[str]  # empty: any
    ends: tuple[int, int] | None  # both included


def number(text: str) -> int:
    shift = SHIFT.fullmatch(text)
    return int(shift[1]) << int(shift[2]) if shift else int(text.replace("'", ""))


def range_axis(m: re.Match[str]) -> Axis:
    ends = tuple(number(end) for end in m["arguments"].split(", ")) if m["form"] == "range" else None
    return Axis(m["key"], m["type"], m["default"], m["unit"], m["sentence"], [], ends)  # type: ignore[arg-type]


def choice_axis(m: re.Match[str]) -> Axis:
    words = WORD.findall(m["words"])
    default = next(word for name, word, _ in words if name == m["default"])
    return Axis(m["key"], "text", default, m["unit"], m["sentence"], [word for _, word, hidden in words if not hidden], None)


def axes(of_workload: bool = False) -> list[Axis]:
    """of_workload: with those that only the section `workload` sets."""
    out: list[Axis] = []
    for line in FIELDS.read_text().splitlines():
        if m := AXIS.match(line):
            out.append(range_axis(m))
        elif m := CHOICE.match(line):
            out.append(choice_axis(m))
        elif line.startswith(("AXIS(", "CHOICE(")):
            raise SystemExit(f"{FIELDS}: {line}: see the forms of AXIS and CHOICE at the head of the file")
    return [axis for axis in out if of_workload or axis.key not in SET_BY_WORKLOAD]


def renamed_axes() -> list[tuple[str, str]]:
    """(former key, key) of each axis that had another key."""
    return RENAMED.findall(FIELDS.read_text())


def described(axis: Axis) -> str:
    return axis.sentence + (f" ({axis.unit})" if axis.unit else "")


def one(axis: Axis, hardware: list[str]) -> dict[str, object]:
    """The schema of one value."""
    out: dict[str, object] = {"description": described(axis)}
    if axis.ends:
        out |= {"type": ["integer", "null"] if axis.type == "opt_i64" else "integer", "minimum": axis.ends[0], "maximum": axis.ends[1]}
    elif axis.type == "flag":
        out["type"] = "boolean"
    else:
        out["enum"] = axis.values or hardware
    return out


def many(axis: Axis) -> dict[str, object]:
    """The schema of several values: one, a list, or for whole numbers a form that counts."""
    value = {"$ref": f"#/$defs/one/properties/{axis.key}"}
    forms: list[object] = [value, {"type": "array", "minItems": 1, "items": value}]
    if axis.ends:
        forms += [{"$ref": "#/$defs/pow2"}, {"$ref": "#/$defs/range"}]
    return {"description": described(axis), "anyOf": forms}


def replaced(text: str, head: str, lines: list[str]) -> str:
    """The text with the lines between `head` and the entry of the model replaced."""
    start = text.index(head) + len(head)
    return text[:start] + "".join(lines) + text[text.index(MODEL, start):]


def line_of(key: str, value: dict[str, object]) -> str:
    return f'        "{key}": {json.dumps(value)},\n'


def former(section: str) -> list[str]:
    """Former keys: the reader takes them, and editors mark them as deprecated."""
    return [line_of(before, {"deprecated": True, "description": f"Renamed to {key}", "$ref": f"#/$defs/{section}/properties/{key}"})
            for before, key in renamed_axes()]


def renewed(text: str) -> str:
    hardware = json.loads(text)["$defs"]["one"]["properties"]["hardware"]["enum"]
    text = replaced(text, ONE, [line_of(axis.key, one(axis, hardware)) for axis in axes()] + former("one"))
    return replaced(text, MANY, [line_of(axis.key, many(axis)) for axis in axes()] + former("many"))


def main() -> None:
    text = SCHEMA.read_text()
    new = renewed(text)
    if sys.argv[1:] == ["--check"]:
        raise SystemExit(0 if new == text else "schema/json/grid.schema.json is out of date: run scripts/grid_schema.py")
    SCHEMA.write_text(new)


if __name__ == "__main__":
    main()
