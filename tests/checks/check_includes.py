#!/usr/bin/env python3
"""A room includes only headers of rooms its arrows allow, and headers of outside libraries whose home it is.

The configure step checks what is linked; header-only use would slip past it.
"""
import re

import sources

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)

# The homes of outside headers: pattern -> rooms that may include it.
TORCH_ROOMS = {"comm", "model", "kernels", "optim", "parallel", "step", "rank"}
HOMES = [
    (re.compile(r"sqlite3\.h$"), {"store"}),
    (re.compile(r"csv\.h$"), {"import"}),
    (re.compile(r"(librsvg|cairo)/?.*\.h$"), {"answers"}),
    (re.compile(r"curl/"), {"export"}),
    (re.compile(r"sodium\.h$"), {"agent"}),
    (re.compile(r"boost/beast"), {"serve"}),
    (re.compile(r"CLI/"), {"cli", "agent", "rank"}),
    (re.compile(r"(torch|ATen|c10|c10d)/"), TORCH_ROOMS),
    (re.compile(r"(cuda|nccl|nvml)[\w/]*\.h$"), TORCH_ROOMS | {"agent", "phantom"}),
]


def problems_of(path, room, rooms):
    for match in INCLUDE.finditer(path.read_text(errors="replace")):
        header = match.group(1) or match.group(2)
        where = f"{path.relative_to(sources.ROOT)}: includes {header}:"
        other = sources.room_of(header, rooms)
        if other and other != room and other not in rooms[room]:
            yield f"{where} room '{room}' may not know room '{other}'; it may use {sorted(rooms[room])}"
        for pattern, homes in HOMES:
            if pattern.match(header) and room not in homes:
                yield f"{where} its home is {sorted(homes)}, not '{room}'"


def main():
    rooms = sources.arrows()
    looked_at, problems = 0, []
    for path in sources.files(".h", ".cpp", ".cu", ".cuh"):
        room = sources.room_of(path.relative_to(sources.ROOT).as_posix(), rooms)
        if room:
            looked_at += 1
            problems += problems_of(path, room, rooms)
    sources.finish(problems, looked_at)


if __name__ == "__main__":
    main()
