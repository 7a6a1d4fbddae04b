#!/usr/bin/env python3
"""rooms.py REVISION [REVISION]: lines of code, comments, files, small files and the largest class of each room, as the table of
docs/measurements; with two revisions, before and after. A line of code is neither blank nor a comment of a whole line; a small
file has less than 30 lines. The size of a class counts its members and member functions, as Universal Ctags reads them:
overloads each, members that a macro makes not. Needs git and ctags."""
import collections
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".def", ".sql", ".js", ".css"}
NOT_COUNTED = {"tests", "examples", "docs"}
CPP = {".h", ".cpp", ".cu", ".cuh"}
COMMENT = re.compile(r"\s*(//|/?\*|--)")
SMALL = 30


class Room(NamedTuple):
    code: int
    comments: int
    files: int
    small: int
    largest: str


def unpack(revision: str, folder: pathlib.Path) -> None:
    archive = subprocess.run(["git", "archive", revision], capture_output=True, check=True).stdout
    tar = folder / "tree.tar"
    tar.write_bytes(archive)
    with tarfile.open(tar) as tree:
        tree.extractall(folder, filter="data")
    tar.unlink()


def room_of(path: pathlib.Path) -> str:
    two_floors = path.parts[0] in ("orchestrator", "worker", "bench_kernels") and len(path.parts) > 2
    return "/".join(path.parts[:2 if two_floors else 1])


def sources(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in sorted(root.rglob("*")):
        here = path.relative_to(root)
        if path.is_file() and path.suffix in SUFFIXES and here.parts[0] not in NOT_COUNTED and len(here.parts) > 1:
            yield here


def class_sizes(root: pathlib.Path, paths: list[pathlib.Path]) -> collections.Counter[tuple[str, str]]:
    """(room, class) -> members and member functions that the class itself declares."""
    said = subprocess.run(["ctags", "-f", "-", "--languages=C++", "--langmap=C++:+.cu.cuh", "--kinds-C++=mpf", "--fields=+sK", "-L", "-"],
                          cwd=root, input="\n".join(map(str, paths)), capture_output=True, text=True, check=True).stdout
    out: collections.Counter[tuple[str, str]] = collections.Counter()
    for line in said.splitlines():
        name, path, *rest = line.split("\t")
        scope = re.search(r"\t(?:class|struct):(\S+)", line)
        if scope and "::" not in name and not re.search(rf"\b{re.escape(scope[1].split('::')[-1])}::~?{re.escape(name)}\b", line):
            out[room_of(pathlib.Path(path)), scope[1].split("::")[-1]] += 1
    return out


def rooms(revision: str) -> dict[str, Room]:
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        unpack(revision, root)
        paths = list(sources(root))
        sizes = class_sizes(root, [path for path in paths if path.suffix in CPP])
        counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
        for path in paths:
            lines = (root / path).read_text(errors="replace").splitlines()
            written = [line for line in lines if line.strip()]
            comments = sum(bool(COMMENT.match(line)) for line in written)
            is_small = path.suffix in CPP and len(lines) < SMALL
            for i, more in enumerate((len(written) - comments, comments, 1, int(is_small))):
                counts[room_of(path)][i] += more
    out = {}
    for room, (code, comments, files, small) in counts.items():
        largest = max(((size, of) for (where, of), size in sizes.items() if where == room), default=(0, ""))
        out[room] = Room(code, comments, files, small, f"`{largest[1]}` {largest[0]}" if largest[1] else "")
    return out


def cell(before: object, after: object) -> str:
    show = [f"{v:,}" if isinstance(v, int) else str(v) for v in (before, after)]
    return show[1] if show[0] == show[1] else " → ".join(show)


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    before, after = rooms(sys.argv[1]), rooms(sys.argv[-1])
    print("| room | code | comments | files | small files | largest class |\n|---|---|---|---|---|---|")
    nothing = Room(0, 0, 0, 0, "")
    for room in sorted(before.keys() | after.keys()):
        pairs = zip(before.get(room, nothing), after.get(room, nothing))
        print(f"| `{room}` | " + " | ".join(cell(a, b) for a, b in pairs) + " |")
    sums = [[sum(int(row[i]) for row in table.values()) for i in range(4)] for table in (before, after)]
    print("| all production code | " + " | ".join(cell(a, b) for a, b in zip(*sums)) + " | |")


if __name__ == "__main__":
    main()
