#!/usr/bin/env python3
"""ARCHITECTURE.md is short, and each question of newcomer_questions.json is answered from it in at most two links.

A question's `path` is the documents and source files on the way: ARCHITECTURE.md links the first, and each document links the next.
The last one contains `answer`.
"""
import json
import os
import pathlib

import check_links
import sources

MOST_LINES = 150
MOST_LINKS = 2


def linked_from(document: pathlib.Path) -> set[str]:
    """Paths below the repository's root to which a document links."""
    targets = (link.target.partition("#")[0] for link in check_links.links_of(document.read_text()))
    return {os.path.relpath(document.parent / target, sources.ROOT) for target in targets if target}


def problem_of(question: dict) -> str | None:
    path = question["path"]
    if not 1 <= len(path) <= MOST_LINKS:
        return f"takes {len(path)} links, at most {MOST_LINKS} are allowed"
    before = "ARCHITECTURE.md"
    for name in path:
        if name not in linked_from(sources.ROOT / before):
            return f"{before} does not link {name}"
        before = name
    if question["answer"] not in (sources.ROOT / before).read_text():
        return f"{before} does not contain '{question['answer']}'"
    return None


def main() -> None:
    questions = json.loads(pathlib.Path(__file__).with_name("newcomer_questions.json").read_text())
    found = [(each["question"], problem_of(each)) for each in questions]
    problems = [f"{question} {problem}" for question, problem in found if problem]
    lines = len((sources.ROOT / "ARCHITECTURE.md").read_text().splitlines())
    if lines > MOST_LINES:
        problems.append(f"ARCHITECTURE.md has {lines} lines; the limit is {MOST_LINES}. Move details to docs/")
    if not problem_of({"path": ["LICENSE"], "answer": ""}):
        problems.append("a path that is not linked was accepted")
    sources.finish(problems, len(questions))


if __name__ == "__main__":
    main()
