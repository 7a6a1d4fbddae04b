#!/usr/bin/env python3
"""grid_schema.py [--check]: writes the axes of schema/json/grid.schema.json from schema/fields.def, the section launch and the
lists of its settings in docs/*.md from the launchers' launch_keys.def, and the strategies' words, also to
status.schema.json, from schema/strategies.def.

--check writes nothing; it exits 1 if a file is out of date. The list of hardware is left as it is: a unit test compares it with
the catalogue.
"""
import json
import pathlib
import re
import sys
import textwrap
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIELDS = ROOT / "schema" / "fields.def"
LAUNCH_KEYS = sorted((ROOT / "orchestrator" / "launch").glob("*/launch_keys.def"))
STRATEGIES = ROOT / "schema" / "strategies.def"
SCHEMA = ROOT / "schema" / "json" / "grid.schema.json"
STATUS = ROOT / "schema" / "json" / "status.schema.json"
AXIS = re.compile(
    r"^AXIS\((?P<type>\w+), (?P<key>\w+), (?P<default>[^,]+), "
    r'(?P<form>any|range)\((?P<arguments>.*?)\), "(?P<unit>[^"]*)", "[^"]*", "(?P<sentence>[^"]*)"\)$'
)
CHOICE = re.compile(r'^CHOICE\(\w+, (?P<key>\w+), (?P<default>\w+), "(?P<unit>[^"]*)", "[^"]*", "(?P<sentence>[^"]*)", (?P<words>.*)\)$')
WORD = re.compile(r'\((\w+), "(\w+)"(, hidden)?\)')
SHIFT = re.compile(r"(?:std::int64_t\{)?(\d+)\}? << (\d+)")
STRATEGY = re.compile(r'^STRATEGY\(\w+, (\w+), (\w+), "([^"]*)", "[^"]*"\)$', re.MULTILINE)
STRATEGY_WORD = re.compile(r'(?<=        )\{"enum": \["grid".*\]\}')
STRATEGY_KIND = re.compile(r'(?<="kind": )\{"description": "grid: .*\]\}')
AUDITED_RULES = re.compile(r'("rule": \{"enum": )\[[^]]*\]')
LAUNCH_TABLE = re.compile(r'^LAUNCH(ER|_TABLE)\((\w+), (\w+), (?:"(\w*)", )?"([^"]*)"\)\n((?:LAUNCH_KEY\(.*\)\n)*)LAUNCH_END\(\2\)$', re.MULTILINE)
LAUNCH_KEY = re.compile(r'^LAUNCH_KEY\((?P<type>[\w:<>]+), (?P<key>\w+), (?P<default>\{\}|"[^"]*"|[\w.]+), (?P<check>\w+)\((?P<arguments>.*?)\), '
                        r'"(?P<option>[^"]*)", "(?P<sentence>[^"]*)"\)$', re.MULTILINE)
TEXT: dict[str, object] = {"type": "string", "minLength": 1}
VARIABLES: dict[str, object] = {"type": "object", "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "additionalProperties": {"type": ["string", "number", "boolean"]}}
# What the ends of the checks of numbers are; 1e6 and 1e9 only keep products small.
ENDS: dict[str, dict[str, object]] = {"count": {"minimum": 1}, "real": {"minimum": 0}, "span": {"minimum": 1}}
MIX = r"^[a-z0-9-]+(\+[a-z0-9-]+)+$"  # of GPUs (schema/hardware_kinds.h)
MARKS = re.compile(r"(<!-- launch: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
LAUNCH = '    "launch": {\n'
DEFS = '  "$defs": {\n'
ONE = '    "one": {\n      "type": "object",\n      "minProperties": 1,\n      "additionalProperties": false,\n      "properties": {\n'
MANY = ONE.replace('"one"', '"many"')
MODEL = '        "model": {'
SET_BY_WORKLOAD = {"workload", "program"}  # the section of that name sets them; no grid sets them as axes


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


def described(axis: Axis) -> str:
    return axis.sentence + (f" ({axis.unit})" if axis.unit else "")


# The axis whose values a run may find itself: under base and grid (the reader refuses it elsewhere).
AUTO_AXIS = "micro_batch_size"
AUTO: list[object] = [
    {"const": "auto"},
    {"type": "object", "additionalProperties": False, "required": ["auto"],
     "properties": {"auto": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer", "minimum": 1}}}},
]


def one(axis: Axis, hardware: list[str]) -> dict[str, object]:
    """The schema of one value."""
    out: dict[str, object] = {"description": described(axis)}
    if axis.ends:
        out |= {"type": ["integer", "null"] if axis.type == "opt_i64" else "integer", "minimum": axis.ends[0], "maximum": axis.ends[1]}
    elif axis.type == "flag":
        out["type"] = "boolean"
    elif axis.key == "hardware":
        out["anyOf"] = [{"enum": hardware}, {"type": "string", "pattern": MIX}]
    elif axis.values:
        out["enum"] = axis.values
    else:
        out |= TEXT
    if axis.key == "env":  # a map, or the text that results have
        del out["type"], out["minLength"]
        return out | {"anyOf": [VARIABLES, {"type": "string"}]}
    if axis.key == "seq_len":
        return {"description": out.pop("description"), "anyOf": [out, {"$ref": "#/$defs/percentile"}]}
    if axis.key == AUTO_AXIS:
        return {"description": out.pop("description"), "anyOf": [out, *AUTO]}
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


class LaunchKey(NamedTuple):
    type: str
    key: str
    default: str
    check: str
    arguments: str
    option: str
    sentence: str

    def absent(self) -> str:
        """What holds where no file states it; "": nothing."""
        said = self.sentence.partition("; absent: ")[2]
        value = self.default.strip('"')
        return said or (value if self.type == "bool" or value not in ("", "0", "{}") else "")

    def meaning(self) -> str:
        return self.sentence.partition("; absent: ")[0]

    def described(self) -> str:
        return self.meaning() + (f"; absent: {self.absent()}" if self.absent() else "")


class LaunchTable(NamedTuple):
    is_launcher: bool
    struct: str
    name: str
    required: str
    sentence: str
    keys: list[LaunchKey]


def launch_tables() -> list[LaunchTable]:
    text = "".join(path.read_text() for path in LAUNCH_KEYS)
    out = [LaunchTable(form == "ER", struct, name, required, sentence, [LaunchKey(**m.groupdict()) for m in LAUNCH_KEY.finditer(keys)])
           for form, struct, name, required, sentence, keys in LAUNCH_TABLE.findall(text)]
    if sum(len(table.keys) for table in out) != text.count("\nLAUNCH_KEY(") or len(out) != text.count("\nLAUNCH_END("):
        raise SystemExit("launch_keys.def of a launcher: the forms of its lines are in schema/launch_settings.h")
    return out


def setting(key: LaunchKey, hardware: list[str], tables: dict[str, str]) -> dict[str, object]:
    """The schema of one setting of a launcher. tables: name of each struct that is a map."""
    inner = re.sub(r".*<(.*)>", r"\1", key.type)
    value: dict[str, object] = {"$ref": f"#/$defs/launch_{tables[inner]}"} if inner in tables else TEXT
    if key.type.startswith("ByHardware"):
        return {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": {name: value for name in hardware},
                "patternProperties": {MIX: value}}
    if key.type.startswith("std::vector"):
        return {"type": "array", "minItems": 1, "items": {"anyOf": [TEXT, value]} if inner in tables else TEXT}
    if key.type == "bool":
        return {"type": "boolean"}
    if key.type in ("i64", "double"):
        ends: dict[str, object] = dict(zip(("minimum", "maximum"), map(number, key.arguments.split(", ")))) if key.check == "range" else ENDS[key.check]
        return {"type": "integer" if key.type == "i64" else "number", **ends}
    return {"enum": json.loads(f"[{key.arguments}]")} if key.check == "words" else value


def closed_map(indent: str, head: dict[str, object], settings: dict[str, dict[str, object]]) -> str:
    """A map of these settings and no others, a line each."""
    lines = [f'{indent}  "{key}": {json.dumps(value)},\n' for key, value in (head | {"additionalProperties": False}).items()]
    inner = ",\n".join(f'{indent}    "{key}": {json.dumps(value)}' for key, value in settings.items())
    return "{\n" + "".join(lines) + f'{indent}  "properties": {{\n{inner}\n{indent}  }}\n{indent}}}'


def launch_section(hardware: list[str]) -> str:
    """The section launch, and behind it the head of $defs with the tables that it refers to."""
    tables = launch_tables()
    names = {table.struct: table.name for table in tables if not table.is_launcher}
    settings = {table.name: {key.key: {"description": key.described()} | setting(key, hardware, names) for key in table.keys} for table in tables}
    sections = ",\n".join(f'        "{table.name}": ' + closed_map("        ", {"description": table.sentence, "type": ["object", "null"]},
                                                                  settings[table.name]) for table in tables if table.is_launcher)
    head = ('      "description": "where trials run",\n      "type": "object",\n      "minProperties": 1,\n'
            '      "additionalProperties": false,\n      "properties": {\n')
    defs = "".join(f'    "launch_{table.name}": ' + closed_map("    ", {"type": "object", "minProperties": 1} | (
        {"required": [table.required]} if table.required else {}), settings[table.name]) + ",\n" for table in tables if not table.is_launcher)
    return f"{LAUNCH}{head}{sections}\n      }}\n    }}\n  }},\n{DEFS}{defs}"


def launch_list(name: str) -> str:
    """The list of a document: the settings of a launcher, or of a map among them."""
    table = next(each for each in launch_tables() if each.name == name)
    lines = []
    for key in table.keys:
        default = f", default {key.absent()}" if key.absent() else ""
        words = "; one of " + ", ".join(json.loads(f"[{key.arguments}]")) if key.check == "words" else ""
        option = f"; `{key.option if key.option.startswith('-') else '--' + key.option}`" if key.option else ""
        lines.append(textwrap.fill(f"- `{key.key}`{default}: {key.meaning()}{words}{option}", 120, subsequent_indent="  ",
                                   break_long_words=False, break_on_hyphens=False))
    return "\n".join(lines) + "\n"


def renewed_document(text: str) -> str:
    """With the lists between the marks <!-- launch: NAME --> and <!-- end -->."""
    return MARKS.sub(lambda m: f"{m[1]}\n{launch_list(m[2])}\n{m[3]}", text)


def with_strategies(text: str) -> str:
    found = STRATEGY.findall(STRATEGIES.read_text())
    words = {"enum": [word for word, _, _ in found]}
    described = {"description": "; ".join(f"{word}: {sentence}" for word, _, sentence in found)} | words
    text = STRATEGY_WORD.sub(lambda _: json.dumps(words), text)
    return STRATEGY_KIND.sub(lambda _: json.dumps(described), text)


def renewed_status(text: str) -> str:
    """With the rules that an audit counts: those of memory and results, and the strategies' words."""
    rules = ["memory", "history", "recompute"]
    rules += [word for word, scope, _ in STRATEGY.findall(STRATEGIES.read_text()) if scope != "kEveryTrial"]
    return AUDITED_RULES.sub(lambda m: m[1] + json.dumps(rules), text)


def renewed(text: str) -> str:
    text = with_strategies(text)
    hardware = json.loads(text)["$defs"]["one"]["properties"]["hardware"]["anyOf"][0]["enum"]
    text = text[:text.index(LAUNCH)] + launch_section(hardware) + text[text.index(ONE):]
    text = replaced(text, ONE, [line_of(axis.key, one(axis, hardware)) for axis in axes()])
    return replaced(text, MANY, [line_of(axis.key, many(axis)) for axis in axes()])


def main() -> None:
    documents = [(path, renewed_document) for path in sorted((ROOT / "docs").glob("*.md"))]
    for path, renew in ((SCHEMA, renewed), (STATUS, renewed_status), *documents):
        text = path.read_text()
        new = renew(text)
        if sys.argv[1:] != ["--check"]:
            path.write_text(new)
        elif new != text:
            raise SystemExit(f"{path.relative_to(ROOT)} is out of date: run scripts/grid_schema.py")


if __name__ == "__main__":
    main()
