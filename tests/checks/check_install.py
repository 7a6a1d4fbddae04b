#!/usr/bin/env python3
"""check_install.py CMAKE BUILD CXX: what `cmake --install` puts down is enough for a program that does find_package(sweep), and the
installed programs start."""
import pathlib
import re
import subprocess
import sys
import tempfile

import sources


def run(*words) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sources.finish([f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}"], 1)
    return done.stdout


def main() -> None:
    cmake, build, compiler = sys.argv[1:]
    problems = []
    with tempfile.TemporaryDirectory(prefix="sweep-install-") as name:
        prefix, consumer = pathlib.Path(name) / "prefix", pathlib.Path(name) / "consumer"
        run(cmake, "--install", build, "--prefix", prefix)
        run(cmake, "-S", sources.ROOT / "tests" / "install", "-B", consumer, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_CXX_COMPILER={compiler}")
        run(cmake, "--build", consumer)
        printed = run(consumer / "consumer")
        if not re.fullmatch(r"[0-9a-f]{16}\n", printed):
            problems.append(f"the consumer printed {printed!r}, not a trial id")
        for program in ("sweep", "sweep-agent"):
            run(prefix / "bin" / program, "--help")
        leaks = [path for path in prefix.rglob("*.cmake") if str(sources.ROOT) in path.read_text()]
        problems += [f"{path.name} names a folder of the build machine" for path in leaks]
    sources.finish(problems, 3)


if __name__ == "__main__":
    main()
