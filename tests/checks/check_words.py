#!/usr/bin/env python3
"""Words that this project once used in a sense of its own do not spread: the field has other words for them.

private_words.json holds, for each word, the field's word and how often the old one may still stand in code, comments, messages and
documents. More is a failure. `check_words.py --write` lowers the numbers to what is there; it never raises one.
"""
import json
import re
import sys

import sources

TABLE = sources.ROOT / "tests" / "checks" / "private_words.json"
SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # the words of an identifier: kTwoWords, TwoWords
SUFFIXES = (".h", ".cpp", ".cu", ".py", ".md", ".sql", ".def", ".yaml", ".js")
# Old records, what was published under an old name, and this table.
LEFT_OUT = ("docs/measurements/", "tests/golden/", "tests/unit/grid/yaml_suite/", "CHANGELOG.md", "tests/checks/check_words.py",
            "tests/checks/private_words.json")


def looked_at():
    for path in sources.files(*SUFFIXES):
        name = path.relative_to(sources.ROOT).as_posix()
        if not name.startswith(LEFT_OUT):
            yield name, SPLIT.sub("_", path.read_text(errors="replace")).lower()


def places_of(word, texts):
    """file -> how often. An underscore ends a word, so that identifiers count; two words may stand on two lines."""
    pattern = re.compile(r"(?<![a-z])" + r"[\s/*#]+".join(map(re.escape, word.split())) + r"(?![a-z])")
    found = {name: len(pattern.findall(text)) for name, text in texts}
    return {name: count for name, count in found.items() if count}


def main():
    table = json.loads(TABLE.read_text())
    texts = list(looked_at())
    problems = []
    for word, entry in table.items():
        places = places_of(word, texts)
        count = sum(places.values())
        if count > entry["left"]:
            most = ", ".join(f"{name} ({n})" for name, n in sorted(places.items(), key=lambda item: -item[1])[:4])
            problems.append(f"'{word}' stands {count} times, {entry['left']} are left from before; write {entry['instead']}. Most: {most}")
        entry["left"] = min(count, entry["left"])
    if "--write" in sys.argv[1:]:
        TABLE.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{sum(entry['left'] for entry in table.values())} uses of {len(table)} words are left")
    sources.finish(problems, len(texts))


if __name__ == "__main__":
    main()
