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
    r'(?P<form>any|range|one_of)\((?P<arguments>.*?)\), "(?P<unit>[^"]*)", "(?P<sentence>[^"]*)"\)$',
    re.MULTILINE,
)
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


def axes() -> list[Axis]:
    text = FIELDS.read_text()
    out: list[Axis] = []
    hidden = 0
    for m in AXIS.finditer(text):
        ends = tuple(number(end) for end in m["arguments"].split(", ")) if m["form"] == "range" else None
        values = re.findall(r'"([^"]+)"', m["arguments"]) if m["form"] == "one_of" else []
        if m["key"] in SET_BY_WORKLOAD:
            hidden += 1
            continue
        out.append(Axis(m["key"], m["type"], m["default"], m["unit"], m["sentence"], values, ends))  # type: ignore[arg-type]
    if len(out) + hidden != len(re.findall(r"^AXIS\(", text, re.MULTILINE)):
        raise SystemExit(f"{FIELDS}: a line of AXIS has another form than AXIS(type, key, default, domain, unit, sentence)")
    return out


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


def renewed(text: str) -> str:
    hardware = json.loads(text)["$defs"]["one"]["properties"]["hardware"]["enum"]
    text = replaced(text, ONE, [f'        "{axis.key}": {json.dumps(one(axis, hardware))},\n' for axis in axes()])
    return replaced(text, MANY, [f'        "{axis.key}": {json.dumps(many(axis))},\n' for axis in axes()])


def main() -> None:
    text = SCHEMA.read_text()
    new = renewed(text)
    if sys.argv[1:] == ["--check"]:
        raise SystemExit(0 if new == text else "schema/json/grid.schema.json is out of date: run scripts/grid_schema.py")
    SCHEMA.write_text(new)


if __name__ == "__main__":
    main()
