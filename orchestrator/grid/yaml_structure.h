// YamlStructure: where in the collections of a YAML text yaml-cpp is. Before each node the cursor goes over the
// structure that must stand there: `-`, `key:`, `,`, an anchor, brackets.
#pragma once
#include <cstddef>
#include <vector>

#include "orchestrator/grid/yaml_text.h"

namespace sweep::grid {

class YamlStructure {
 public:
  enum class Style { kBlockList, kBlockMap, kFlowList, kFlowMap, kPair };  // kPair: `[key: value]`

  explicit YamlStructure(std::string_view text) : text(text) {}

  // Up to the node that comes next; `anchored`: it has an anchor.
  void to_node(bool anchored);
  // The same for nothing, or for `null` as it is written: its place and text.
  std::pair<YamlMark, std::string_view> to_null(bool anchored);
  YamlMark open(Style style);  // stands at its start, and returns that
  void close();
  void key_was(const YamlMark& key);  // the cursor is behind it
  void value_was();

  bool in_flow() const { return !levels_.empty() && levels_.back().style >= Style::kFlowList; }
  bool key_due() const { return !levels_.empty() && levels_.back().is_map() && !levels_.back().value_due; }
  int indent() const;  // column of the innermost block; -1: none

  void skip_space();
  void skip_anchor(bool anchored);                // refuses a tag
  void refuse_unclosed(std::size_t until) const;  // a bracket or a quote
  [[noreturn]] static void no_colon(const YamlMark& key);

  YamlText text;

 private:
  struct Level {
    Style style;
    YamlMark start;          // start of a block: its column is that of its keys or dashes
    bool first = true;       // nothing of it was read yet
    bool value_due = false;  // a key of the map was read
    YamlMark key = {};
    bool is_map() const { return style != Style::kBlockList && style != Style::kFlowList; }
    bool has_brackets() const { return style == Style::kFlowList || style == Style::kFlowMap; }
    char bracket() const { return style == Style::kFlowList ? ']' : '}'; }
  };

  bool before_node();  // false: a key stands alone, and the node is its missing value
  void before_entry(Level& in);
  bool before_value(const Level& in);
  bool belongs_here(const YamlMark& since) const;  // a node on a line of its own, by its indentation
  void refuse_stray(const YamlMark& since) const;

  std::vector<Level> levels_;
};

}  // namespace sweep::grid
