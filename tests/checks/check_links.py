#!/usr/bin/env python3
"""Every relative link of every *.md names a file or folder that exists and, after '#', a heading that exists.

A link whose text is one symbol in backticks (`allocations_wanted`) and whose target is a source file must find that symbol in it.
"""
import pathlib
import re
import tempfile
import urllib.parse
from collections.abc import Iterator
from typing import NamedTuple

import sources

LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*<?([^\s)>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
SOURCE = {".h", ".cpp", ".py", ".cmake", ".def", ".sql"}
OUTSIDE = re.compile(r"^[a-z][a-z+.-]*:")


class Link(NamedTuple):
    line: int
    text: str
    target: str


def links_of(text: str) -> Iterator[Link]:
    blank = CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for match in LINK.finditer(blank):
        line = blank.count("\n", 0, match.start()) + 1
        yield Link(line, match[1], match[2])
        yield from (inner._replace(line=line) for inner in links_of(match[1]))  # an image that is a link


def anchor_of(heading: str) -> str:
    """The anchor that GitHub and MkDocs make of a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))


def anchors_of(path: pathlib.Path) -> set[str]:
    text = CODE_BLOCK.sub("", path.read_text())
    return {anchor_of(heading) for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE)}


def problem_of(document: pathlib.Path, link: Link) -> str | None:
    """Says what is wrong with a link of a document; None: nothing, or it leads outside."""
    if OUTSIDE.match(link.target):
        return None
    name, _, anchor = link.target.partition("#")
    path = (document.parent / urllib.parse.unquote(name)) if name else document
    if not path.exists():
        return f"{link.target} does not exist"
    if anchor and path.suffix == ".md" and anchor not in anchors_of(path):
        return f"{link.target}: {path.name} has no heading #{anchor}"
    symbol = re.fullmatch(r"`(?:\w+::)*(\w+)`", link.text)
    if symbol and path.suffix in SOURCE and not re.search(rf"\b{symbol[1]}\b", path.read_text()):
        return f"{link.target} does not contain '{symbol[1]}'"
    return None


def problems_in(document: pathlib.Path) -> list[str]:
    found = [(link, problem_of(document, link)) for link in links_of(document.read_text())]
    return [f"{document.name}:{link.line}: {problem}" for link, problem in found if problem]


def refuses_bad_links() -> bool:
    """Five bad links, wrong in four ways, and three good ones."""
    with tempfile.TemporaryDirectory(prefix="sweep-links-") as folder:
        (pathlib.Path(folder) / "a.h").write_text("int there();\n")
        document = pathlib.Path(folder) / "a.md"
        document.write_text("# One `two`\n[x](none.md) [x](#three) [`absent`](a.h) [![i](no.svg)](a.h)\n"
                            "![i](no.svg) [`a::there`](a.h) [x](#one-two)\n```\n[x](in-code.md)\n```\n")
        return len(problems_in(document)) == 5


def main() -> None:
    documents = sources.files(".md")
    problems = [f"{path.relative_to(sources.ROOT).parent}/{problem}" for path in documents for problem in problems_in(path)]
    if not refuses_bad_links():
        problems.append("the check does not find the five bad links that it makes")
    sources.finish(problems, sum(len(list(links_of(path.read_text()))) for path in documents))


if __name__ == "__main__":
    main()
