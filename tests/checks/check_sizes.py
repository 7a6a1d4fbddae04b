#!/usr/bin/env python3
"""Files are at most 400 lines, functions at most 50, main at most 60 (in C++ the braces and what is between them)."""
import ast
import re

import sources

MAX_FILE, MAX_FUNCTION, MAX_MAIN = 400, 50, 60

# Files and functions that may be longer, and why. "path" for a file, "path:function" for a function.
EXCEPTIONS = {
    "LICENSE": "a given text",
    "python/sweep_trial.py": "one file, so that it can be copied beside a script",
    "bench_kernels/kernels/rows_impl.h": "one table of loops, compiled once for each instruction set",
}

TEXTS = (".md", ".json", ".yaml", ".yml", ".txt", ".svg", ".csv", ".sql", ".html")  # not code

NOISE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w'])'(?:\\.|[^'\\\n])+'""", re.DOTALL)
NOT_FUNCTIONS = re.compile(r"\b(namespace|class|struct|union|enum)\b[^()]*$|\bextern\s*$|=\s*$|^\s*$")


def without_noise(text):
    """The text with comments, literals and preprocessor lines blanked; line breaks are kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = NOISE.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)


def cpp_functions(text):
    """(name, lines) of each outermost brace block that follows a parameter list at namespace or class scope."""
    text = without_noise(text)
    depth_of_function, head_start, line = None, 0, 1
    stack: list[str] = []
    for index, char in enumerate(text):
        if char == "\n":
            line += 1
        elif char == "{":
            head = text[head_start:index]
            if depth_of_function is None and "(" in head and not NOT_FUNCTIONS.search(head):
                depth_of_function = len(stack)
                name, first = re.search(r"([\w:~]+|operator\S+)\s*\(", head), line
            stack.append(char)
            head_start = index + 1
        elif char == "}":
            if stack:
                stack.pop()
            if depth_of_function == len(stack):
                yield (name.group(1) if name else "?"), line - first + 1
                depth_of_function = None
            head_start = index + 1
        elif char == ";":
            head_start = index + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def is_python(path, text):
    return path.suffix == ".py" or text.startswith("#!/usr/bin/env python3")


def problems_of(path, text):
    shown = path.relative_to(sources.ROOT).as_posix()
    lines = text.count("\n")
    if lines > MAX_FILE and shown not in EXCEPTIONS:
        yield f"{shown}: {lines} lines, at most {MAX_FILE}"
    functions = []
    if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
        functions = cpp_functions(text)
    elif is_python(path, text):
        functions = python_functions(text)
    for name, length in functions:
        limit = MAX_MAIN if name == "main" else MAX_FUNCTION
        if length > limit and f"{shown}:{name}" not in EXCEPTIONS:
            yield f"{shown}: {name} has {length} lines, at most {limit}"


def main():
    looked_at, problems = 0, []
    for path in sources.files():
        if path.suffix in TEXTS or path.parts[-2] == "corpus" or "corpus" in path.parts:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # not a source
        looked_at += 1
        problems += problems_of(path, text)
    sources.finish(problems, looked_at)


if __name__ == "__main__":
    main()
