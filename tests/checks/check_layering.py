#!/usr/bin/env python3
"""check_layering.py CMAKE: a forbidden arrow, and an outside library away from its home, stop the configure step by name."""
import subprocess
import sys
import tempfile

import sources

# What is added to the build, and the sentence that must refuse it.
CASES = [
    ("store->grid", "forbidden arrow: room 'store' links room 'grid'"),
    ("report->SQLite::SQLite3", "outside library 'SQLite::SQLite3' has its home in 'store', not in 'report'"),
]


def refusal(cmake, arrow, build):
    return subprocess.run(
        [cmake, "-S", str(sources.ROOT), "-B", build, "-G", "Ninja", "-DSWEEP_WITH_RANK=OFF", "-DSWEEP_BUILD_TESTS=OFF",
         f"-DSWEEP_FORBIDDEN_FOR_TEST={arrow}"], capture_output=True, text=True)


def main():
    problems = []
    with tempfile.TemporaryDirectory(prefix="sweep-layering-") as build:
        for arrow, sentence in CASES:
            done = refusal(sys.argv[1], arrow, build)
            said = " ".join(done.stderr.split())
            if done.returncode == 0:
                problems.append(f"{arrow}: configure went through")
            elif sentence not in said:
                problems.append(f"{arrow}: refused without saying '{sentence}':\n{done.stderr}")
    sources.finish(problems, len(CASES))


if __name__ == "__main__":
    main()
