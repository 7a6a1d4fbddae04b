#!/usr/bin/env python3
"""Files are at most 400 lines, functions at most 50, main at most 60 (in C++ the braces and what is between them).

A C++ class has at most 20 methods and 12 members. Constructors, destructors, operators and static constants do not count, and
a struct is data: it has no such limit, nor has a test's fixture.
"""
import ast
import re
from typing import NamedTuple

import sources

MAX_FILE, MAX_FUNCTION, MAX_MAIN = 400, 50, 60
MAX_METHODS, MAX_MEMBERS = 20, 12

# What may be longer, and why. "path" for a file, "path:function" for a function.
EXCEPTIONS = {
    "LICENSE": "a given text",
    "python/sweep_trial.py": "one file, so that it can be copied beside a script",
    "bench_kernels/kernels/rows_impl.h": "one table of loops, compiled once for each instruction set",
}

# Classes over the budget: the methods and members that each may have, and why. The numbers may only go down.
CLASS_EXCEPTIONS: dict[str, tuple[int, int, str]] = {
    "bench_kernels/comm/shm_backend.h:ShmBackend": (22, 12, "c10d::Backend's interface has one method for each collective"),
    "bench_kernels/comm/shm_segment.h:ShmSegment": (20, 15, "to be split: the mapping, and the protocol of its slots"),
    "bench_kernels/model/parameters.h:Parameters": (24, 12, "to be split: names and shapes, and storage"),
    "orchestrator/grid/compile.cpp:Compiler": (29, 12, "one method for each construct of a grid's expressions"),
    "orchestrator/grid/spec.h:GridSpec": (20, 15, "one member for each section of a grid file"),
    "worker/phantom/clock.h:Clocks": (23, 12, "one method for each kind of recorded time"),
    "worker/phantom/nccl_comm.h:Communicator": (20, 16, "to be split: its members, and its operations"),
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


class CppClass(NamedTuple):
    name: str
    methods: int
    members: int


CLASS_HEAD = re.compile(r"\bclass\s+(\w+(?:::\w+)*)\s*(?:final\s*)?(?::(?!:)[^;{}()]*)?\{")
NOT_COUNTED = re.compile(r"(using|typedef|friend|static_assert|class|struct|union|enum|static constexpr)\b")
PLAIN_BLOCK = re.compile(r"\{[^{}]*\}")


def class_body(text, opened):
    """What stands in the braces that begin at `opened`, with every block in it emptied."""
    depth, at = 0, opened
    for at in range(opened, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            break
    body = text[opened + 1:at]
    while (emptied := PLAIN_BLOCK.sub("\0", body)) != body:
        body = emptied
    return body


def flat(declaration):
    """A declaration without access specifiers, attributes, template arguments, and what stands in parentheses."""
    out = re.sub(r"\b(public|protected|private)\s*:(?!:)|\[\[[^\]]*\]\]", " ", declaration)
    out = re.sub(r"operator\s*[^\w\s(]+|operator\s*\(\)|->", " operator ", out)
    while (less := re.sub(r"\([^()]*\)", "\1", re.sub(r"<[^<>]*>", "", out))) != out:
        out = less
    return re.sub(r"^\s*template\s*", "", out).strip()


def cpp_classes(text):
    """The classes of a file, nested ones too, with what each declares itself."""
    text = without_noise(text)
    for head in CLASS_HEAD.finditer(text):
        name, methods, members = head[1], 0, 0
        # A declaration ends at ';', or with a block that no ';' or ',' follows: a method's.
        for declaration in re.split(r";|(?<=\0)(?!\s*[;,)])", class_body(text, head.end() - 1)):
            plain = flat(declaration)
            if not plain.strip("\0 \n") or NOT_COUNTED.match(plain) or re.search(r"\benum\s+$", text[:head.start()]):
                continue
            if "\1" not in plain.split("=")[0]:
                members += plain.count(",") + 1
            elif not re.search(rf"(^|[\s~]){name.split('::')[-1]}\s*\x01|\boperator\b", plain):
                methods += 1
        yield CppClass(name, methods, members)


def counts_right():
    """A class of 3 methods and 4 members, with all that must not be counted."""
    text = """
class Sample final : public Base {
 public:
  explicit Sample(int a) : a_(a) {}
  ~Sample() override;
  bool operator==(const Sample&) const = default;
  void one(std::string b = {}, std::function<void(int)> c = {});
  template <class T>
  T two() const { if (a_) { return {}; } return {}; }
  virtual std::map<int, std::pair<int, int>> three() = 0;
  static constexpr int kNone = 0;
 private:
  enum class Kind { kOne, kTwo };
  struct Inner { int x = 0, y = 0; };
  using Call = std::function<void()>;
  int a_ = f(1, 2), b_{};
  std::function<void(int, int)> c_;
  std::array<char, 4> d_{};
};
"""
    return CppClass("Sample", 3, 4) in cpp_classes(text)


def class_problems(shown, text):
    for each in cpp_classes(text):
        allowed = CLASS_EXCEPTIONS.get(f"{shown}:{each.name}", (MAX_METHODS, MAX_MEMBERS, ""))
        if each.methods > allowed[0] or each.members > allowed[1]:
            yield (f"{shown}: class {each.name} has {each.methods} methods and {each.members} members,"
                   f" at most {allowed[0]} and {allowed[1]}")


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
    if path.suffix in (".h", ".cpp") and not shown.startswith("tests/"):
        yield from class_problems(shown, text)
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
    if not counts_right():
        problems.append("the check miscounts the class that it makes")
    sources.finish(problems, looked_at)


if __name__ == "__main__":
    main()
