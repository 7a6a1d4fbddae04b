#!/usr/bin/env python3
"""Adds up the reports of one test run (ctest's JUnit files and notes.tsv) into `N passed, N failed, N skipped`.

Skips and failures are named with their reasons. Exit code 1 when anything failed or nothing passed.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def message_of(case, element):
    """The `message` of an element of a test case; empty where there is none."""
    found = case.find(element)
    return "" if found is None else found.get("message") or ""


def skip_reason(case):
    """The sentence after GoogleTest's or a script's `Skipped`, else what ctest says."""
    output = case.findtext("system-out") or ""
    found = re.search(r"(?:: Skipped\n|^SKIPPED: )(.+)", output, re.MULTILINE)
    if found:
        return found.group(1).strip()
    return message_of(case, "skipped") or "no reason given"


def cases_of(case):
    """How many a passed test stands for: a GoogleTest program says at its start how many cases it runs, others are one."""
    found = re.search(r"^\[=+\] Running (\d+) tests? from ", case.findtext("system-out") or "", re.MULTILINE)
    return int(found.group(1)) if found else 1


def read_junit(path):
    """(status, name, reason) of each test case; ctest's statuses are run, fail, notrun and disabled."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{path.stem}: {case.get('name')}"
        status = case.get("status")
        if status == "run":
            for _ in range(cases_of(case)):
                yield "passed", name, ""
        elif status == "fail":
            yield "failed", name, message_of(case, "failure") or "failed"
        elif status == "notrun" and "SKIP_" in message_of(case, "skipped"):
            yield "skipped", name, skip_reason(case)
        else:  # not built, disabled: a test that says nothing has not passed
            yield "failed", name, f"did not run ({skip_reason(case)})"


def read_notes(path):
    for line in path.read_text().splitlines():
        status, name, reason = line.split("\t")
        yield status, name, reason


def main():
    reports = pathlib.Path(sys.argv[1])
    results = []
    for path in sorted(reports.glob("*.xml")):
        results += read_junit(path)
    if (reports / "notes.tsv").exists():
        results += read_notes(reports / "notes.tsv")
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for status, name, reason in results:
        count[status] += 1
        if status != "passed":
            print(f"{status}: {name}: {reason}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 0 if count["passed"] and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
