#include "orchestrator/grid/yaml_structure.h"

#include <fmt/format.h>

namespace sweep::grid {

int YamlStructure::indent() const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    if (level->style < Style::kFlowList) return level->start.column();
  }
  return -1;
}

void YamlStructure::skip_space() {
  return in_flow() ? text.skip_flow_lines(indent()) : text.skip_lines();
}

void YamlStructure::skip_anchor(bool anchored) {
  if (anchored) {
    if (text.peek() != '&' && text.peek() != '!') YamlRefusal::misread(text.mark());
    if (text.peek() == '&') text.skip_name();
    skip_space();
  }
  if (text.peek() == '!')
    YamlRefusal::unsupported(text.mark(),
                             "tags (!name) are not used in grid files; remove it, or put the text in quotes");
}

void YamlStructure::refuse_unclosed(std::size_t until) const {
  std::vector<YamlMark> brackets;
  for (const Level& level : levels_) {
    if (level.has_brackets()) brackets.push_back(level.start);
  }
  YamlText ahead = text;
  brackets = ahead.open_brackets(std::move(brackets), indent(), until);
  ahead.skip_blanks();
  if (ahead.end() && !brackets.empty()) ahead.never_closed(brackets.back());
}

void YamlStructure::no_colon(const YamlMark& key) {
  YamlRefusal::invalid(key, "no ': ' after this key; write 'key: value' on one line");
}

// An item or a key.
void YamlStructure::before_entry(Level& in) {
  skip_space();
  if (!in_flow() && !in.first) text.aligned(in.start.column());
  if (in.has_brackets() && !in.first) text.expect(',', in.bracket());
  in.first = false;
  if (in.style == Style::kBlockList) {
    if (!text.at_dash()) YamlRefusal::misread(text.mark());
    return text.take();
  }
  skip_space();
  if (!in.is_map() && (text.peek() == ',' || text.peek() == ']'))
    YamlRefusal::invalid(text.mark(), "a value is missing before this ','");
  if (in.is_map() && text.peek() == '?' && text.white(1))
    YamlRefusal::unsupported(text.mark(), "keys with '?' are not used in grid files; write 'key: value'");
  if (in.is_map() && text.at_block_colon())
    YamlRefusal::unsupported(text.mark(), "a key is missing before this ':'");
}

bool YamlStructure::before_value(const Level& in) {
  if (in.style == Style::kBlockMap) {
    text.skip_blanks();
    if (!text.at_block_colon() || text.mark().line != in.key.line) no_colon(in.key);
  } else {
    skip_space();
    if (text.peek() != ':') return false;
  }
  text.take();
  return true;
}

bool YamlStructure::before_node() {
  if (levels_.empty()) return true;
  Level& in = levels_.back();
  if (in.is_map() && in.value_due) return before_value(in);
  before_entry(in);
  return true;
}

bool YamlStructure::belongs_here(const YamlMark& since) const {
  if (in_flow() || text.mark().line == since.line || text.end()) return true;
  return text.indentation() > indent() && !text.at_marker();
}

void YamlStructure::refuse_stray(const YamlMark& since) const {
  if (belongs_here(since)) return;
  const bool value = !levels_.empty() && levels_.back().style == Style::kBlockMap;
  if (value && text.at_dash() && text.column() == indent()) return;  // a list may stand at its key's column
  if (text.tab_indents_line()) YamlRefusal::tab_indents(text.mark());
  YamlRefusal::invalid(
      text.mark(),
      fmt::format("indented by {} where it needs {} or more to belong to the key or '-' above it",
                  text.indentation(), indent() + 1),
      ErrorKind::kInvalidValue);
}

void YamlStructure::to_node(bool anchored) {
  if (!before_node()) YamlRefusal::misread(text.mark());
  const YamlMark since = text.mark();
  skip_space();
  refuse_stray(since);
  skip_anchor(anchored);
  refuse_stray(since);
}

std::pair<YamlMark, std::string_view> YamlStructure::to_null(bool anchored) {
  if (!before_node()) return {levels_.back().key, ""};
  const YamlMark since = text.mark();
  skip_space();
  if (anchored) {
    refuse_stray(since);
    skip_anchor(anchored);
  }
  const YamlMark here = text.mark();
  for (const std::string_view word : {"~", "null", "Null", "NULL"}) {
    if (!text.starts_with(word) || !belongs_here(since)) continue;
    text.take(word.size());
    return {here, word};
  }
  return {in_flow() ? here : since, ""};
}

YamlMark YamlStructure::open(Style style) {
  levels_.push_back({style, text.mark()});
  if (levels_.back().has_brackets()) text.take();
  return levels_.back().start;
}

void YamlStructure::close() {
  if (const Level& level = levels_.back(); level.has_brackets()) {
    skip_space();
    if (!level.first && text.peek() == ',') text.take();
    skip_space();
    text.expect(level.bracket(), level.bracket());
  }
  levels_.pop_back();
  value_was();
}

void YamlStructure::key_was(const YamlMark& key) {
  levels_.back().key = key;
  levels_.back().value_due = true;
}

void YamlStructure::value_was() {
  if (!levels_.empty()) levels_.back().value_due = false;
}

}  // namespace sweep::grid
