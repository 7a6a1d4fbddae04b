"""The input of the house checks: the repository's own source files, and the rooms with their arrows."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # ctest's SKIP_RETURN_CODE of these checks


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(SKIPPED)


def finish(problems, looked_at):
    """Prints each problem and ends the check. Looking at nothing is a failure, not a pass."""
    for problem in problems:
        print(problem)
    if not looked_at:
        print("found nothing to check")
    print(f"looked at {looked_at}, {len(problems)} problems")
    sys.exit(1 if problems or not looked_at else 0)


def files(*suffixes):
    """Tracked and new files that git does not ignore; without git, everything outside build folders."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.splitlines()]
    else:
        paths = [p for p in ROOT.rglob("*") if not any(part.startswith(("build", ".")) for part in p.relative_to(ROOT).parts)]
    return sorted(p for p in paths if p.is_file() and (not suffixes or p.suffix in suffixes))


def arrows():
    """room -> rooms it may use, from cmake/Layering.cmake: the one place that says so."""
    text = (ROOT / "cmake" / "Layering.cmake").read_text()
    found = re.findall(r"^set\(SWEEP_ARROWS_(\w+)\s+([^)]*)\)", text, re.MULTILINE)
    return {room: set(allowed.replace('"', "").split()) for room, allowed in found}


def room_of(path, rooms):
    """The room a path of the repository (or of an include line) belongs to; None for what is in no room."""
    parts = pathlib.PurePosixPath(path).parts
    if parts and parts[0] == "schema":
        return "schema"
    if len(parts) > 2 and parts[0] in ("orchestrator", "worker", "bench_kernels") and parts[1] in rooms:
        return parts[1]
    if parts == ("orchestrator", "main.cpp"):
        return "cli"
    return None
