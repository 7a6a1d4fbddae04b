#include "orchestrator/grid/yaml_text.h"

#include <fmt/format.h>

namespace sweep::grid {

void YamlRefusal::invalid(const YamlMark& at, std::string message, ErrorKind error, std::string subject) {
  throw YamlRefusal{{YamlProblem::Kind::kInvalid, at.at, std::move(message), error, std::move(subject)}};
}

void YamlRefusal::unsupported(const YamlMark& at, std::string message, ErrorKind error, std::string subject) {
  throw YamlRefusal{{YamlProblem::Kind::kUnsupported, at.at, std::move(message), error, std::move(subject)}};
}

void YamlRefusal::tab_indents(const YamlMark& at) {
  YamlRefusal::invalid(at, "a tab in the indentation; YAML indents with spaces only",
                       ErrorKind::kInvalidValue);
}

void YamlRefusal::too_deep(const YamlMark& at) {
  YamlRefusal::unsupported(
      at, fmt::format("nested deeper than {} levels; a grid file needs fewer than 10", kMaxNesting),
      ErrorKind::kInvalidValue);
}

void YamlRefusal::misread(const YamlMark& at) {
  YamlRefusal::invalid(
      at, "this can be read in more than one way; write it on one line, with texts in double quotes");
}

void YamlText::skip_lines() {
  while (true) {
    skip_blanks();
    if (peek() == '#') {
      if (!is_yaml_white(before())) YamlRefusal::invalid(mark(), "a comment needs a space before its '#'");
      skip_line();
    }
    if (peek() != '\n') return;
    take();
  }
}

void YamlText::skip_flow_lines(int n) {
  const int line = mark().line;
  skip_lines();
  if (end() || mark().line == line) return;
  if (at_marker())
    YamlRefusal::invalid(mark(), "a document ends here inside an open '[' or '{'; close it first",
                         ErrorKind::kInvalidValue);
  if (indentation() <= n)
    YamlRefusal::invalid(
        mark(),
        fmt::format("a line inside [ ] or {{ }} needs at least {} spaces before it, its closing bracket too",
                    n + 1),
        ErrorKind::kInvalidValue);
}

void YamlText::aligned(int to) {
  if (column() != indentation()) YamlRefusal::tab_indents(mark());
  if (column() != to)
    YamlRefusal::invalid(
        mark(),
        fmt::format("indented by {} where the lines it belongs to are indented by {}; align them", column(),
                    to),
        ErrorKind::kInvalidValue);
}

void YamlText::end_of_document() {
  skip_lines();
  bool ended = false;
  for (; at_marker("..."); ended = true) {
    take(3);
    skip_lines();
  }
  if (end()) return;
  if (ended || at_marker("---"))
    YamlRefusal::unsupported(mark(), "a second document starts here; a grid file holds one");
  if (column() != indentation()) YamlRefusal::tab_indents(mark());
  YamlRefusal::invalid(mark(),
                       "this belongs to nothing above it; align it with the keys it stands beside, and close "
                       "what is open above");
}

void YamlText::expect(char sign, char closing) {
  if (peek() != sign) YamlRefusal::invalid(mark(), fmt::format("a ',' or the '{}' is missing here", closing));
  take();
}

std::string_view YamlText::skip_name() {
  const std::size_t start = mark().at;
  take();
  while (!white(0) && std::string_view(",[]{}").find(peek()) == std::string_view::npos) take();
  return from(start + 1);
}

// True if the last character before the cursor on its line, blanks aside, is a sign, or if there is none.
bool YamlText::value_begins() const {
  const std::string_view line = from(mark().line_start);
  const auto last = line.find_last_not_of(" \t");
  return last == std::string_view::npos ||
         std::string_view(",[{:-").find(line[last]) != std::string_view::npos;
}

std::vector<YamlMark> YamlText::open_brackets(std::vector<YamlMark> open, int n, std::size_t until) {
  while (!end() && mark().at < until) {
    const char c = peek();
    if ((c == '"' || c == '\'') && value_begins()) {
      walk_quoted(nullptr, n);
    } else if (c == '#' && is_yaml_white(before())) {
      skip_line();
    } else {
      if ((c == '[' || c == '{') && (!open.empty() || value_begins())) open.push_back(mark());
      if (open.size() > kMaxNesting) YamlRefusal::too_deep(open.back());
      if ((c == ']' || c == '}') && !open.empty()) open.pop_back();
      take();
    }
  }
  return open;
}

void YamlText::never_closed(const YamlMark& open) {
  back_to(open);
  YamlRefusal::invalid(
      open, fmt::format("this '{}' is never closed; add the '{}'", peek(), peek() == '{' ? '}' : ']'),
      ErrorKind::kInvalidValue);
}

}  // namespace sweep::grid
