#!/usr/bin/env python3
"""check_test_summary.py CMAKE CTEST: the summary of scripts/test counts what ctest really writes."""
import pathlib
import subprocess
import sys
import tempfile

import sources

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(counting NONE)
enable_testing()
add_test(NAME good COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME many COMMAND printf "[==========] Running 3 tests from 1 test suite.\\n[  PASSED  ] 3 tests.\\n")
add_test(NAME cases COMMAND sh -c "cat ${CMAKE_SOURCE_DIR}/cases.txt; exit 1")
add_test(NAME cut COMMAND sh -c "head -n 2 ${CMAKE_SOURCE_DIR}/cases.txt; kill -SEGV $$")
add_test(NAME bad COMMAND ${CMAKE_COMMAND} -E false)
add_test(NAME not_built COMMAND ${CMAKE_BINARY_DIR}/no-such-program)
add_test(NAME off COMMAND ${CMAKE_COMMAND} -E true)
set_tests_properties(off PROPERTIES DISABLED ON)
add_test(NAME by_code COMMAND sh -c "echo SKIPPED: no such device; exit 77")
set_tests_properties(by_code PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME by_text COMMAND printf "a.cpp:3: Skipped\\nneeds two disks\\n[  SKIPPED ] x\\n")
set_tests_properties(by_text PROPERTIES SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]")
add_test(NAME slow COMMAND sleep 5)
set_tests_properties(slow PROPERTIES TIMEOUT 0.2)
"""
CASES = """[==========] Running 4 tests from 1 test suite.
[       OK ] A.Good (0 ms)
a.cpp:3: Skipped
needs two disks
[  SKIPPED ] A.Disk (0 ms)
a.cpp:9: Failure
Value of: x
words of a child [  FAILED  ] B/A.Bad/one, where GetParam() = 4-byte object <01> (2 ms)
[       OK ] A.Other (1 ms)
"""
EXPECTED = ["1 of fuzz", "skipped: run: cases A.Disk: needs two disks", "failed: run: cases B/A.Bad/one: Value of: x",
            "failed: run: cut: ", " after 1 of 4 cases", "skipped: run: by_code: no such device", "skipped: run: by_text: needs two disks",
            "failed: fuzz.x: 1 of fuzz", "failed: run: not_built", "failed: run: off", "failed: run: slow",
            "9 passed, 7 failed, 3 skipped"]
# A second run of what failed: `once` and the one case of `program` pass then, `always` fails again, and a sanitizer's report is not
# tried again.
SECOND_PROJECT = """cmake_minimum_required(VERSION 3.25)
project(second NONE)
enable_testing()
add_test(NAME once COMMAND sh -c "test -e ran || { touch ran; exit 1; }")
add_test(NAME program COMMAND sh -c "test -e seen || { touch seen; cat ${CMAKE_SOURCE_DIR}/cases.txt; exit 1; }")
add_test(NAME always COMMAND ${CMAKE_COMMAND} -E false)
add_test(NAME fault COMMAND sh -c "echo ERROR: AddressSanitizer: heap-use-after-free; exit 1")
"""
SECOND_CASES = "[==========] Running 1 test from 1 test suite.\na.cpp:9: Failure\nValue of: x\n[  FAILED  ] A.Late (2 ms)\n"
SECOND_EXPECTED = ["unstable: waits: once: passed alone after: ", "unstable: waits: program A.Late: passed alone after: Value of: x",
                   "failed: waits: always: ", "failed: waits: fault: ", "2 passed, 2 failed, 0 skipped"]


def summary(cmake, ctest, folder):
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "cases.txt").write_text(CASES)
    reports = folder / "reports"
    reports.mkdir()
    (reports / "notes.tsv").write_text("passed\tbuild.x\t\npassed\tfuzz.y\t\nfailed\tfuzz.x\t1 of fuzz\n")
    subprocess.run([cmake, "-S", folder, "-B", folder / "b"], check=True, capture_output=True)
    subprocess.run([ctest, "--test-dir", folder / "b", "--output-junit", reports / "run.xml"], capture_output=True)
    return subprocess.run([sys.executable, sources.ROOT / "scripts" / "count_tests.py", reports], capture_output=True, text=True)


def second_run(cmake, ctest, folder):
    """Names worth a second run, and the summary after it."""
    (folder / "CMakeLists.txt").write_text(SECOND_PROJECT)
    (folder / "cases.txt").write_text(SECOND_CASES)
    reports, count = folder / "reports", [sys.executable, str(sources.ROOT / "scripts" / "count_tests.py")]
    reports.mkdir()
    subprocess.run([cmake, "-S", folder, "-B", folder / "b"], check=True, capture_output=True)
    subprocess.run([ctest, "--test-dir", folder / "b", "--output-junit", reports / "waits.xml"], capture_output=True)
    names = subprocess.run([*count, "--failed", reports / "waits.xml"], capture_output=True, text=True).stdout.split()
    subprocess.run([ctest, "--test-dir", folder / "b", "-R", f"^({'|'.join(names)})$", "--output-junit", reports / "waits-again.xml"],
                   capture_output=True)
    return names, subprocess.run([*count, reports], capture_output=True, text=True)


def check_second_run(cmake, ctest):
    with tempfile.TemporaryDirectory(prefix="sweep-counting-") as folder:
        names, done = second_run(cmake, ctest, pathlib.Path(folder))
    problems = [f"the summary lacks '{line}':\n{done.stdout}{done.stderr}" for line in SECOND_EXPECTED if line not in done.stdout]
    if sorted(names) != ["always", "once", "program"]:
        problems.append(f"worth a second run: {names}")
    if done.returncode != 1:
        problems.append(f"exit code {done.returncode} after a second run with failures")
    return problems


def main():
    problems = check_second_run(sys.argv[1], sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="sweep-counting-") as folder:
        done = summary(sys.argv[1], sys.argv[2], pathlib.Path(folder))
    problems += [f"the summary lacks '{line}':\n{done.stdout}{done.stderr}" for line in EXPECTED if line not in done.stdout]
    if done.returncode != 1 or not done.stdout.endswith(EXPECTED[-1] + "\n"):
        problems.append(f"the summary must end with '{EXPECTED[-1]}' and exit 1, not {done.returncode}")
    sources.finish(problems, len(EXPECTED) + len(SECOND_EXPECTED) + 3)


if __name__ == "__main__":
    main()
