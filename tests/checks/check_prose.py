#!/usr/bin/env python3
"""Unit tests assert codes, places and values, not sentences: a message can then be reworded without a test that fails.

prose_assertions.json holds, for each test file, how many assertions look into a text. More is a failure, also in a file that is not
listed. `check_prose.py --write` lowers the numbers to what is there; it never raises one. Files that test a rendered text stand in
RENDERED with the text that they test; they are not counted.
"""
import json
import re
import sys

import sources

TABLE = sources.ROOT / "tests" / "checks" / "prose_assertions.json"
FOLDERS = ("tests/unit/", "tests/parity/")
# A matcher of a part of a text, with the text in place; and a search for a text.
ASSERTION = re.compile(r"\b(?:HasSubstr|StartsWith|EndsWith|ContainsRegex|MatchesRegex|StrEq)\(|find\([^;]*?std::string::npos")

RENDERED = {
    "tests/unit/export/retrying_client_test.cpp": "requests over HTTP",
    "tests/unit/export/tracker_test.cpp": "requests over HTTP",
    "tests/unit/interop/recipes_test.cpp": "the files and flags of other trainers",
    "tests/unit/interop/trainer_config_test.cpp": "the files and flags of other trainers",
    "tests/unit/launch/gridengine_script_test.cpp": "the script of a batch job",
    "tests/unit/launch/orchestrator_script_test.cpp": "the script of a batch job",
    "tests/unit/launch/slurm_script_test.cpp": "the script of a batch job",
    "tests/unit/report/confirm_test.cpp": "a table of the terminal",
    "tests/unit/report/heatmap_test.cpp": "a page, a picture and a table",
    "tests/unit/report/report_test.cpp": "a page",
    "tests/unit/report/stacks_test.cpp": "stacks of ranks as `explain` shows them",
    "tests/unit/report/text_test.cpp": "tables of the terminal",
    "tests/unit/report/source_tables_test.cpp": "tables of the terminal",
    "tests/unit/report/transfer_test.cpp": "a table and a picture",
    "tests/unit/serve/server_test.cpp": "answers over HTTP",
    "tests/unit/store/enumerators_test.cpp": "SQL",
}


def counted():
    for path in sources.files(".cpp", ".h"):
        name = path.relative_to(sources.ROOT).as_posix()
        if name.startswith(FOLDERS) and name not in RENDERED:
            if count := len(ASSERTION.findall(path.read_text())):
                yield name, count


def main():
    allowed = json.loads(TABLE.read_text())
    found = dict(counted())
    problems = [f"{name}: {count} assertions on text, {allowed.get(name, 0)} are left from before; assert a code (IsError, At in "
                "tests/support/error_matchers.h), a typed field or a value" for name, count in found.items() if count > allowed.get(name, 0)]
    problems += [f"{name} is in RENDERED, but there is no such file" for name in RENDERED if not (sources.ROOT / name).is_file()]
    if "--write" in sys.argv[1:]:
        left = {name: min(count, allowed[name]) for name, count in found.items() if name in allowed}
        TABLE.write_text(json.dumps(left, indent=1) + "\n")
    print(f"{sum(found.values())} assertions on text in {len(found)} files")
    sources.finish(problems, len(found) + len(RENDERED))


if __name__ == "__main__":
    main()
