// Scalars of a YAML text against what yaml-cpp read there (YAML 1.2.2, 7.3 and 8.1).
#include <fmt/format.h>

#include "orchestrator/grid/yaml_text.h"

namespace sweep::grid {
namespace {

// `text` comes off the front of what is left of a value; no value: nothing is compared.
void take_off(std::string_view* value, std::string_view text, const YamlMark& at) {
  if (value == nullptr) return;
  if (!value->starts_with(text)) YamlRefusal::misread(at);
  value->remove_prefix(text.size());
}

void take_off_character(std::string_view* value, const YamlMark& at) {
  if (value == nullptr) return;
  if (value->empty()) YamlRefusal::misread(at);
  do value->remove_prefix(1);
  while (!value->empty() && (static_cast<unsigned char>(value->front()) & 0xC0u) == 0x80u);
}

}  // namespace

std::string YamlText::folded() {
  const std::size_t start = mark().at;
  skip_blanks();
  if (peek() != '\n') return std::string(from(start));
  std::size_t breaks = 0;
  while (peek() == '\n') {
    take();
    ++breaks;
    skip_blanks();
  }
  return breaks == 1 ? " " : std::string(breaks - 1, '\n');
}

void YamlText::plain(std::string_view value, int n) {
  while (!value.empty()) {
    const YamlMark here = mark();
    if (end()) YamlRefusal::misread(here);
    if (is_yaml_blank(peek()) || peek() == '\n') {
      take_off(&value, folded(), here);
    } else {
      take();
      take_off(&value, from(here.at), here);
    }
    if (mark().line == here.line || indentation() > n) continue;
    back_to(here);
    skip_flow_lines(n);
  }
}

void YamlText::quoted(std::string_view value, int n) {
  const YamlMark open = mark();
  walk_quoted(&value, n);
  if (!value.empty()) YamlRefusal::misread(open);
}

void YamlText::walk_quoted(std::string_view* value, int n) {
  const YamlMark open = mark();
  const char quote = peek();
  take();
  while (peek() != quote || (quote == '\'' && peek(1) == quote)) {
    const YamlMark here = mark();
    std::string text;
    if (is_yaml_blank(peek()) || peek() == '\n') {
      text = folded();
    } else if (quote == '"' && peek() == '\\') {
      walk_escape(value);
    } else if (!end()) {
      text = std::string(1, peek());
      take(peek() == quote ? 2 : 1);
    }
    if (end())
      YamlRefusal::invalid(open,
                           fmt::format("this quote is never closed; close it with {}, or remove it", quote),
                           ErrorKind::kInvalidValue);
    if (mark().line != here.line && indentation() <= n)
      YamlRefusal::invalid(
          mark(),
          fmt::format("this line is still inside the quotes opened in line {}: close them there, or indent "
                      "it by {} or more",
                      open.line, n + 1),
          ErrorKind::kInvalidValue);
    take_off(value, text, here);
  }
  take();
}

void YamlText::walk_escape(std::string_view* value) {
  const YamlMark start = mark();
  take();
  const char c = peek();
  if (c == '\n') {  // the line goes on without a space
    const std::string text = folded();
    return text == " " ? void() : take_off(value, text, start);
  }
  if (c == 'N' || c == '_')  // yaml-cpp 0.7 makes bytes of these that are not UTF-8
    YamlRefusal::invalid(
        start, fmt::format("the escape '\\{}' is not read here; write '\\x{}'", c, c == 'N' ? "85" : "a0"));
  if (c == '\'')
    YamlRefusal::invalid(
        start, "no such escape in double quotes; write '\\\\' for a backslash, or use single quotes");
  take(c == 'x' ? 3 : c == 'u' ? 5 : c == 'U' ? 9 : 1);
  take_off_character(value, start);
}

void YamlText::block(std::string_view value) {
  while (!white(0) && peek() != '#') take();
  if (peek() == '#')
    YamlRefusal::invalid(mark(), "the text of a '|' or '>' begins on the next line, indented");
  skip_line();
  for (const char c : value) {
    if (is_yaml_white(c)) continue;
    while (is_yaml_blank(peek()) || peek() == '\n') take();
    if (peek() != c) YamlRefusal::misread(mark());
    take();
  }
}

}  // namespace sweep::grid
