#!/usr/bin/env python3
"""Adds up the reports of one test run (ctest's JUnit files and notes.tsv) into `N passed, N failed, N skipped`.

Skips and failures are named with their reasons. Exit code 1 when anything failed or nothing passed. A report NAME-again.xml holds
the second run, alone, of tests that NAME.xml says failed: one that passed then is named as unstable and counts as passed.

`count_tests.py --failed REPORT` prints the names of the failed tests of one report that are worth a second run alone: none whose output
has a sanitizer's report, which is a fault however rarely it shows.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def message_of(case, element):
    """The `message` of an element of a test case; empty where there is none."""
    found = case.find(element)
    return "" if found is None else found.get("message") or ""


def failure_reason(case):
    """ctest's message, and the end of the test's output, which holds a script's traceback."""
    lines = [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()][-12:]
    return "\n    ".join([message_of(case, "failure") or "failed", *lines])


def skip_reason(case):
    """The sentence after GoogleTest's or a script's `Skipped`, else what ctest says."""
    output = case.findtext("system-out") or ""
    found = re.search(r"(?:: Skipped\n|^SKIPPED: )(.+)", output, re.MULTILINE)
    if found:
        return found.group(1).strip()
    return message_of(case, "skipped") or "no reason given"


def case_lines(output):
    """(status, name, reason) of each case that a GoogleTest program reports as ended."""
    begin = 0
    for line in re.finditer(r"\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+).* \(\d+ ms\)$", output, re.MULTILINE):
        status = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[line[1]]
        said = re.search(r": (?:Skipped|Failure)\n(.+)", output[begin:line.start()])
        begin = line.end()
        yield status, line[2], said[1].strip() if said else "no reason given"


def cases_of(case):
    """The cases that a GoogleTest program lists; None: the test is no such program."""
    output = case.findtext("system-out") or ""
    started = re.search(r"^\[=+\] Running (\d+) tests? from ", output, re.MULTILINE)
    if not started:
        return None
    cases, count = list(case_lines(output)), int(started[1])
    if case.get("status") == "run":  # ctest shortens what a passed program printed: cases that are cut out have passed
        return cases + [("passed", "", "")] * (count - len(cases))
    if len(cases) < count or not any(status == "failed" for status, _, _ in cases):
        cases.append(("failed", "", f"{message_of(case, 'failure') or 'failed'} after {len(cases)} of {count} cases"))
    return cases


def read_junit(path):
    """(status, name, reason) of each test case; ctest's statuses are run, fail, notrun and disabled."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{path.stem}: {case.get('name')}"
        status = case.get("status")
        if status in ("run", "fail") and (cases := cases_of(case)) is not None:
            for ended, which, reason in cases:
                yield ended, f"{name} {which}".rstrip(), reason
        elif status == "run":
            yield "passed", name, ""
        elif status == "fail":
            yield "failed", name, failure_reason(case)
        elif status == "notrun" and "SKIP_" in message_of(case, "skipped"):
            yield "skipped", name, skip_reason(case)
        else:  # not built, disabled: a test without a result has not passed
            yield "failed", name, f"did not run ({skip_reason(case)})"


def read_notes(path):
    for line in path.read_text().splitlines():
        status, name, reason = line.split("\t")
        yield status, name, reason


def failed_in(path):
    """The test cases of a report that ran and failed."""
    return [case for case in ElementTree.parse(path).getroot().iter("testcase") if case.get("status") == "fail"]


def worth_a_second_run(path):
    found = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error: ")
    return [case.get("name") for case in failed_in(path) if not found.search(case.findtext("system-out") or "")]


def read_with_second_run(path):
    """Does the same as read_junit; a case that failed in `path` and passed in its second run is `unstable`."""
    again = path.with_name(f"{path.stem}-again.xml")
    passed = {case.get("name") for case in ElementTree.parse(again).getroot().iter("testcase")
              if case.get("status") == "run"} if again.exists() else set()
    second = {f"{path.stem}: {name}" for name in passed & {case.get("name") for case in failed_in(path)}}
    for status, name, reason in read_junit(path):
        passed_then = name in second or name.rpartition(" ")[0] in second  # a case of a program has its own name behind it
        yield ("unstable", name, f"passed alone after: {reason}") if status == "failed" and passed_then else (status, name, reason)


def main():
    if sys.argv[1] == "--failed":
        print("\n".join(worth_a_second_run(pathlib.Path(sys.argv[2]))))
        return 0
    reports = pathlib.Path(sys.argv[1])
    results = []
    for path in sorted(reports.glob("*.xml")):
        if not path.stem.endswith("-again"):
            results += read_with_second_run(path)
    if (reports / "notes.tsv").exists():
        results += read_notes(reports / "notes.tsv")
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for status, name, reason in results:
        count["passed" if status == "unstable" else status] += 1
        if status != "passed":
            print(f"{status}: {name}: {reason}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 0 if count["passed"] and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
