// Scalars: plain and quoted ones with their folding (7.3), anchors and aliases (6.9, 7.1).
#include <fmt/format.h>

#include "orchestrator/grid/yaml_reader.h"

namespace sweep::grid {
namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F)),
        byte(0x80 | (code & 0x3F));
  }
}

// What an escape of one letter stands for; -1: no such escape.
std::int32_t escaped(char c) {
  static constexpr std::string_view kLetters = "0abt\tnvfre \"/\\N_LP";
  static constexpr std::int32_t kCodes[] = {0,    7,   8,   9,   9,    10,   11,   12,     13,
                                            0x1B, ' ', '"', '/', '\\', 0x85, 0xA0, 0x2028, 0x2029};
  const auto at = kLetters.find(c);
  return at == std::string_view::npos ? -1 : kCodes[at];
}

void trim_end(std::string& text, std::size_t down_to) {
  while (text.size() > down_to && YamlSource::is_blank(text.back())) text.pop_back();
}

}  // namespace

bool YamlReader::anchor_name(std::string& out) {
  const Mark start = source_.mark();
  source_.take();
  while (!source_.white(0) && !YamlSource::is_flow_indicator(source_.peek())) source_.take();
  out = std::string(source_.from(start.at + 1));
  if (out.empty())
    return invalid(start, "a name is missing after this; put the text in quotes if it is text");
  return source_.white(0) || YamlSource::is_flow_indicator(source_.peek());
}

bool YamlReader::alias(YamlToken& out) {
  out.kind = YamlToken::Kind::kAlias;
  return anchor_name(out.text);
}

bool YamlReader::quoted(int n, YamlToken& out) {
  const Mark open = source_.mark();
  const char quote = source_.peek();
  out.kind = YamlToken::Kind::kQuoted;
  source_.take();
  std::size_t kept = 0;  // what a line break behind it does not trim
  while (true) {
    if (source_.end())
      return invalid(open, fmt::format("this quote is never closed; close it with {}, or remove it", quote),
                     codes::kNotClosed);
    const char c = source_.peek();
    if (c == '\n') {
      trim_end(out.text, kept);
      if (!fold(n, open, out.text)) return false;
      kept = out.text.size();
    } else if (quote == '"' && c == '\\') {
      if (!double_quoted_escape(n, out.text)) return false;
      kept = out.text.size();
    } else if (c != quote) {
      out.text += c;
      source_.take();
    } else if (quote == '\'' && source_.peek(1) == '\'') {
      out.text += c;
      source_.take(2);
    } else {
      source_.take();
      return true;
    }
  }
}

// Line breaks inside a quoted scalar: one is a space, more are one line break fewer. Stops at the next text.
bool YamlReader::fold(int n, const Mark& open, std::string& out) {
  int breaks = 0;
  while (source_.at_break()) {
    source_.take();
    ++breaks;
    if (source_.at_marker())
      return invalid(
          open,
          fmt::format("this quote is not closed before the document ends in line {}", source_.mark().line),
          codes::kNotClosed);
    source_.skip_blanks();
  }
  if (source_.end()) return true;  // the caller says that the quote is open
  if (source_.indentation() <= n)
    return invalid(source_.mark(),
                   fmt::format("this line is still inside the quotes opened in line {}: close them there, or "
                               "indent it by {} or more",
                               open.line, n + 1),
                   codes::kNotClosed);
  out += breaks == 1 ? std::string(1, ' ') : std::string(static_cast<std::size_t>(breaks - 1), '\n');
  return true;
}

bool YamlReader::double_quoted_escape(int n, std::string& text) {
  const Mark start = source_.mark();
  source_.take();
  const char c = source_.peek();
  if (c == '\n') {  // the line goes on without a space
    std::string folded;
    if (!fold(n, start, folded)) return false;
    if (folded != " ") text += folded;
    return true;
  }
  const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  std::uint32_t code = 0;
  source_.take();
  for (int i = 0; i < digits; ++i) {
    const char digit = source_.peek();
    const auto value = std::string_view("0123456789abcdefABCDEF").find(digit);
    if (digit == '\0' || value == std::string_view::npos)
      return invalid(start, fmt::format("'\\{}' needs {} hexadecimal digits after it", c, digits));
    code = code << 4 | static_cast<std::uint32_t>(value < 16 ? value : value - 6);
    source_.take();
  }
  if (digits == 0 && (c == '\0' || escaped(c) < 0))
    return invalid(start,
                   "no such escape in double quotes; write '\\\\' for a backslash, or use single quotes");
  if (digits == 0) code = static_cast<std::uint32_t>(escaped(c));
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return invalid(start, "this escape is not a character of Unicode");
  append_utf8(text, code);
  return true;
}

bool YamlReader::plain_goes_on(char c, char next, bool in_flow) const {
  if (YamlSource::is_white(c)) return false;
  if (in_flow && YamlSource::is_flow_indicator(c)) return false;
  if (c == ':') return !YamlSource::is_white(next) && !(in_flow && YamlSource::is_flow_indicator(next));
  return c != '#' || !YamlSource::is_white(source_.before());
}

bool YamlReader::plain(int, bool in_flow, YamlToken& out) {
  const char c = source_.peek(), next = source_.peek(1);
  const bool safe = !YamlSource::is_white(next) && !(in_flow && YamlSource::is_flow_indicator(next));
  const bool first = std::string_view("-?:").find(c) != std::string_view::npos
                         ? safe
                         : std::string_view(",[]{}#&*!|>'\"%@`").find(c) == std::string_view::npos;
  if (!first)
    return invalid(source_.mark(), fmt::format("'{}' cannot begin a value here; put the text in quotes", c));
  out.kind = YamlToken::Kind::kPlain;
  plain_line(in_flow, out.text);
  return true;
}

// One line of text, without the blanks at its end; the cursor stops behind the text.
void YamlReader::plain_line(bool in_flow, std::string& out) {
  while (true) {
    const Mark behind = source_.mark();
    source_.skip_blanks();
    if (!plain_goes_on(source_.peek(), source_.peek(1), in_flow)) {
      source_.back_to(behind);
      return;
    }
    out += source_.from(behind.at);
    while (plain_goes_on(source_.peek(), source_.peek(1), in_flow)) {
      out += source_.peek();
      source_.take();
    }
  }
}

void YamlReader::plain_more(int n, bool in_flow, YamlToken& out) {
  while (true) {
    const Mark behind = source_.mark();
    int breaks = 0;
    source_.skip_blanks();
    while (source_.at_break()) {
      source_.take();
      ++breaks;
      if (source_.at_marker()) break;
      source_.skip_blanks();
    }
    if (breaks == 0 || source_.at_marker() || source_.indentation() <= n ||
        !plain_goes_on(source_.peek(), source_.peek(1), in_flow)) {
      source_.back_to(behind);
      return;
    }
    out.text += breaks == 1 ? std::string(1, ' ') : std::string(static_cast<std::size_t>(breaks - 1), '\n');
    plain_line(in_flow, out.text);
  }
}

}  // namespace sweep::grid
