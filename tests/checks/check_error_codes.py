#!/usr/bin/env python3
"""Each error code stands once, has a name of the form `room.what_is_wrong`, and is used by the sources."""
import re

import sources

DEFINITION = re.compile(r'ErrorCode (k\w+)\{\s*"([^"]*)"\}')
NAME = re.compile(r"(?:[a-z]+\.)?[a-z][a-z0-9_]*")


def main():
    texts = {path: path.read_text() for path in sources.files(".h", ".cpp") if "tests" not in path.relative_to(sources.ROOT).parts}
    problems: list[str] = []
    seen: dict[str, str] = {}
    for path, text in texts.items():
        for constant, name in DEFINITION.findall(text):
            where = f"{path.relative_to(sources.ROOT)}: {constant}"
            if not NAME.fullmatch(name):
                problems.append(f"{where}: '{name}' is not of the form room.what_is_wrong")
            if name in seen:
                problems.append(f"{where}: '{name}' is the name of {seen[name]} too")
            seen[name] = where
            room = path.parent
            using = re.compile(r"\bcodes::" + constant + r"\b")
            if not any(using.search(other) for where_used, other in texts.items() if room in where_used.parents or room.name in ("base", "shape")):
                problems.append(f"{where} is used nowhere")
    sources.finish(problems, len(seen))


if __name__ == "__main__":
    main()
