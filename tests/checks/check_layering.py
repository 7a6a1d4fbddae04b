#!/usr/bin/env python3
"""check_layering.py CMAKE: a forbidden arrow, and an outside library away from its home, stop the configure step by name;
ARCHITECTURE.md's list of rooms names the arrows that the build enforces."""
import re
import subprocess
import sys
import tempfile

import sources

# Each case adds something to the build; the sentence must refuse it.
CASES = [
    ("store->grid", "forbidden arrow: room 'store' links room 'grid'"),
    ("answers->SQLite::SQLite3", "outside library 'SQLite::SQLite3' has its home in 'store', not in 'answers'"),
]


def refusal(cmake, arrow, build):
    return subprocess.run(
        [cmake, "-S", str(sources.ROOT), "-B", build, "-G", "Ninja", "-DSWEEP_WITH_RANK=OFF", "-DSWEEP_BUILD_TESTS=OFF",
         f"-DSWEEP_FORBIDDEN_FOR_TEST={arrow}"], capture_output=True, text=True)


def enforced_arrows():
    text = (sources.ROOT / "cmake" / "Layering.cmake").read_text()
    return {room: set(may.strip('"').split()) for room, may in
            re.findall(r'^set\(SWEEP_ARROWS_(\w+) ([^)]*)\)', text, re.MULTILINE)}


def documented_arrows():
    text = re.sub(r"\n  ", " ", (sources.ROOT / "ARCHITECTURE.md").read_text())
    items = re.findall(r"^- `(?:\w+/)?(\w+)`: .* May use: ([^.`]+)\.$", text, re.MULTILINE)
    return [(room, set() if may == "nothing" else set(may.split(", "))) for room, may in items]


def table_problems():
    enforced, rows = enforced_arrows(), documented_arrows()
    named = [room for room, _ in rows]
    problems = [f"ARCHITECTURE.md: room '{room}' has {named.count(room)} items in the list of rooms, not one"
                for room in sorted(set(enforced) | set(named)) if named.count(room) != (room in enforced)]
    for room, may in rows:
        if may != enforced.get(room, may):
            problems.append(f"ARCHITECTURE.md: '{room}' may use {sorted(may)}, but Layering.cmake says {sorted(enforced[room])}")
    return problems


def main():
    problems = table_problems()
    with tempfile.TemporaryDirectory(prefix="sweep-layering-") as build:
        for arrow, sentence in CASES:
            done = refusal(sys.argv[1], arrow, build)
            said = " ".join(done.stderr.split())
            if done.returncode == 0:
                problems.append(f"{arrow}: configure went through")
            elif sentence not in said:
                problems.append(f"{arrow}: refused without saying '{sentence}':\n{done.stderr}")
    sources.finish(problems, len(CASES) + len(enforced_arrows()))


if __name__ == "__main__":
    main()
