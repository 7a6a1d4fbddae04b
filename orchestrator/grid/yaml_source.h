// YamlSource: the text of a YAML file with a cursor that knows its line, and the questions that readers of
// every part ask.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "orchestrator/grid/document.h"

namespace sweep::grid {

class YamlSource {
 public:
  struct Mark {
    std::size_t at = 0, line_start = 0;
    int line = 1;
  };

  explicit YamlSource(std::string_view text) : text_(text) {}

  const Mark& mark() const { return mark_; }
  void back_to(const Mark& mark) { mark_ = mark; }
  std::size_t at() const { return mark_.at; }
  std::size_t line_start() const { return mark_.line_start; }
  int column() const { return column_of(mark_); }
  static int column_of(const Mark& mark) { return static_cast<int>(mark.at - mark.line_start); }
  static Place place_of(const Mark& mark) { return {mark.line, column_of(mark) + 1}; }

  bool end() const { return mark_.at >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return look(mark_.at + ahead); }  // '\0': the end
  bool at_break() const { return peek() == '\n'; }
  bool at_blank() const { return is_blank(peek()); }
  bool white(std::size_t ahead) const { return is_white(peek(ahead)); }  // blank, break or end
  char before() const { return mark_.at == 0 ? '\n' : text_[mark_.at - 1]; }
  std::string_view from(std::size_t start) const { return text_.substr(start, mark_.at - start); }

  void take() {
    const bool line_ends = at_break();
    ++mark_.at;
    if (line_ends) mark_ = {mark_.at, mark_.at, mark_.line + 1};
  }
  void take(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) take();
  }
  void skip_blanks() {
    while (at_blank()) take();
  }
  void skip_line() { mark_.at = std::min(text_.find('\n', mark_.at), text_.size()); }

  // Spaces at the beginning of the current line: its indentation.
  int indentation() const {
    std::size_t at = mark_.line_start;
    while (look(at) == ' ') ++at;
    return static_cast<int>(at - mark_.line_start);
  }
  // "---" or "..." alone at the beginning of a line.
  bool at_marker(std::string_view which) const {
    return column() == 0 && text_.substr(mark_.at).starts_with(which) && white(which.size());
  }
  bool at_marker() const { return at_marker("---") || at_marker("..."); }

  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  static bool is_white(char c) { return is_blank(c) || c == '\n' || c == '\0'; }
  static bool is_flow_indicator(char c) { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'; }

 private:
  char look(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  std::string_view text_;
  Mark mark_;
};

}  // namespace sweep::grid
