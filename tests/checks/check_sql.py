#!/usr/bin/env python3
"""SQL is in the store, readable as SQL: no statement outside of the room, no number of an enumerator, none cut into pieces.

- A literal that begins a statement is in orchestrator/store. What a person types (`sweep query`) is not in the sources.
- A statement that takes more than one line is one raw literal, not several that the compiler joins.
- A condition on a column that holds an enumerator names the enumerator (orchestrator/store/enumerators.h).
"""
import re

import sources

STATEMENT = re.compile(r"^\s*(?:SELECT .*\bFROM\b|INSERT (?:OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|CREATE (?:TEMP )?(?:TABLE|VIEW|INDEX|TRIGGER)|ALTER TABLE|DROP )",
                       re.IGNORECASE | re.DOTALL)
LITERAL = re.compile(r'R"(\w*)\((.*?)\)\1"|"((?:\\.|[^"\\\n])*)"', re.DOTALL)
COMMENT = re.compile(r"//[^\n]*")
NUMBER = re.compile(r"\b(?:state|outcome|verdict|oom_kind)\b\"?\s*(?:=|<>|!=|<=?|>=?|IS(?: NOT)?|(?:NOT )?IN\s*\()\s*\d|\bCASE (?:\w+\.)?(?:state|outcome|verdict|oom_kind)\s+WHEN \d",
                    re.IGNORECASE)
# Released migrations do not change; enumerators_test.cpp compares their numbers with the enumerators.
RELEASED = {"001_initial.sql"}
SAMPLES = {  # text that each rule must find, and text that it must not
    'work.run("UPDATE a SET state = 4 WHERE key = ?");': 1,
    'work.run(R"(SELECT a FROM b\n WHERE outcome IN (6, 8))");': 1,
    'work.run("SELECT a FROM b "\n         "WHERE c = ?");': 1,
    'work.run(R"(SELECT a FROM b\n WHERE state = State::kPending)");': 0,
    'x = fmt::format("UPDATE a SET b = ? WHERE {}", y);  // state = 4': 0,
}


def literals(text):
    """(position, end, content, raw) of each literal that is in no comment."""
    blank = COMMENT.sub(lambda m: " " * len(m.group(0)) if m.group(0).count('"') % 2 == 0 else m.group(0), text)
    for match in LITERAL.finditer(blank):
        raw = match.group(2) is not None
        yield match.start(), match.end(), match.group(2) if raw else match.group(3), raw


def problems_in(shown, text, in_store):
    last = None  # the end of the literal before, where that was one of a statement
    for begin, end, content, raw in literals(text):
        line = text.count("\n", 0, begin) + 1
        begins = STATEMENT.match(content)
        if begins and not in_store:
            yield f"{shown}:{line}: SQL outside of the store: {content[:50]}"
        number = NUMBER.search(content)
        if in_store and (begins or raw) and number:
            yield f"{shown}:{line}: the number of an enumerator in SQL: {number.group(0)}"
        joined = last is not None and not text[last:begin].strip()
        if in_store and joined:
            yield f"{shown}:{line}: a statement in pieces: make it one raw literal"
        last = end if begins or joined else None


def main():
    looked_at, problems = 0, []
    for text, count in SAMPLES.items():
        found = list(problems_in("sample", text, True))
        if len(found) != count:
            problems.append(f"the check finds {len(found)} problems, not {count}, in: {text}")
    for path in sources.files(".cpp", ".h"):
        shown = path.relative_to(sources.ROOT).as_posix()
        if not shown.startswith("orchestrator/"):
            continue
        looked_at += 1
        problems += problems_in(shown, path.read_text(), shown.startswith("orchestrator/store/"))
    for path in sorted((sources.ROOT / "schema" / "sqlite").glob("*.sql")):
        looked_at += 1
        number = NUMBER.search(path.read_text())
        if path.name not in RELEASED and number:
            problems.append(f"schema/sqlite/{path.name}: the number of an enumerator: {number.group(0)}")
    sources.finish(problems, looked_at)


if __name__ == "__main__":
    main()
