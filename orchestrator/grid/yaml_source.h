// YamlSource: the text of a YAML file with a cursor that knows its line.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "orchestrator/grid/document.h"

namespace sweep::grid {

struct YamlMark {
  std::size_t at = 0, line_start = 0;
  int line = 1;
  int column() const { return static_cast<int>(at - line_start); }
  Place place() const { return {line, column() + 1}; }
};

inline bool is_yaml_blank(char c) {
  return c == ' ' || c == '\t';
}
inline bool is_yaml_white(char c) {  // '\0': the end
  return is_yaml_blank(c) || c == '\n' || c == '\0';
}

class YamlSource {
 public:
  explicit YamlSource(std::string_view text) : text_(text) {}

  const YamlMark& mark() const { return mark_; }
  void back_to(const YamlMark& mark) { mark_ = mark; }
  int column() const { return mark_.column(); }

  bool end() const { return mark_.at >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return look(mark_.at + ahead); }  // '\0': the end
  bool white(std::size_t ahead) const { return is_yaml_white(peek(ahead)); }
  char before() const { return mark_.at == 0 ? '\n' : look(mark_.at - 1); }
  std::string_view from(std::size_t start) const { return text_.substr(start, mark_.at - start); }
  bool starts_with(std::string_view word) const { return !end() && text_.substr(mark_.at).starts_with(word); }

  void take(std::size_t count = 1) {
    for (; count > 0; --count) {
      if (look(mark_.at++) == '\n') mark_ = {mark_.at, mark_.at, mark_.line + 1};
    }
  }
  void skip_blanks() {
    while (is_yaml_blank(peek())) take();
  }
  void skip_line() { mark_.at = std::min(text_.find('\n', mark_.at), text_.size()); }

  // Spaces at the beginning of the current line, and whether a tab follows them.
  int indentation() const {
    std::size_t at = mark_.line_start;
    while (look(at) == ' ') ++at;
    return static_cast<int>(at - mark_.line_start);
  }
  bool tab_indents_line() const {
    return look(mark_.line_start + static_cast<std::size_t>(indentation())) == '\t';
  }
  // "---" or "..." alone at the beginning of a line.
  bool at_marker(std::string_view which) const {
    return column() == 0 && starts_with(which) && white(which.size());
  }
  bool at_marker() const { return at_marker("---") || at_marker("..."); }

 private:
  char look(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  std::string_view text_;
  YamlMark mark_;
};

}  // namespace sweep::grid
