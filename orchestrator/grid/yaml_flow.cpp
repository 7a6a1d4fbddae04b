// Flow style: [lists] and {maps}, whose lines need only be indented further than what they stand in (7.4).
#include <fmt/format.h>

#include "orchestrator/grid/yaml_reader.h"

namespace sweep::grid {

// Blanks, comments and line breaks between the parts of a collection.
bool YamlReader::flow_space(int n) {
  const int line = source_.mark().line;
  if (!skip_lines()) return false;
  if (source_.end() || source_.mark().line == line) return true;
  if (source_.at_marker())
    return invalid(source_.mark(), "a document ends here inside an open '[' or '{'; close it first",
                   codes::kNotClosed);
  return source_.indentation() > n ||
         invalid(source_.mark(),
                 fmt::format(
                     "a line inside [ ] or {{ }} needs at least {} spaces before it, its closing bracket too",
                     n + 1),
                 codes::kIndentation);
}

bool YamlReader::flow_collection(int n, const std::string& anchor) {
  const Mark start = source_.mark();
  const bool map = source_.peek() == '{';
  const char open = map ? '{' : '[', close = map ? '}' : ']';
  if (!tree(tree_.open(map ? Node::Kind::kMap : Node::Kind::kList, start, anchor))) return false;
  source_.take();
  for (bool due = false;; due = true) {  // due: a comma, before anything but the end
    if (!flow_space(n)) return false;
    if (due && source_.peek() == ',') {
      source_.take();
      if (!flow_space(n)) return false;
      due = false;
    }
    if (source_.end())
      return invalid(start, fmt::format("this '{}' is never closed; add the '{}'", open, close),
                     codes::kNotClosed);
    if (source_.peek() == close) break;
    if (due) return invalid(source_.mark(), fmt::format("a ',' or the '{}' is missing here", close));
    if (source_.peek() == ',') return invalid(source_.mark(), "a value is missing before this ','");
    bool is_collection = false;
    if (!flow_entry(n, map, is_collection)) return false;
  }
  source_.take();
  return tree(tree_.close());
}

// In a list a value or a single `key: value`; in a map a key with or without a value.
bool YamlReader::flow_entry(int n, bool in_map, bool& is_collection) {
  YamlToken token;
  Mark start = source_.mark();
  if (!flow_anchor(n, token.anchor, start)) return false;
  token.start = source_.mark();
  if (source_.peek() == '?' && source_.white(1))
    return unsupported(source_.mark(), "keys with '?' are not used in grid files; write 'key: value'");
  if (at_flow_colon(false)) return unsupported(source_.mark(), "a key is missing before this ':'");
  if (at_flow_end()) {
    token.text.clear();
  } else if (!flow_node(n, token.anchor, token, is_collection)) {
    return false;
  }
  const Mark behind = source_.mark();
  const bool one_line = behind.line == token.start.line;
  if (!flow_space(n)) return false;
  const bool json_like = is_collection || token.kind == YamlToken::Kind::kQuoted;
  const bool pair = at_flow_colon(json_like) && (in_map || (one_line && source_.mark().line == behind.line));
  if (is_collection && (pair || in_map))
    return unsupported(start, "a key must be a word, not a list or a map");
  if (is_collection) return true;
  if (!pair && !in_map) {
    return tree(tree_.add(token));
  }
  if (in_map && token.text.empty() && token.kind == YamlToken::Kind::kPlain)
    return unsupported(start, "a key is missing here");
  if (!in_map && (!key_length(token) || !tree(tree_.open(Node::Kind::kMap, start, "")))) return false;
  if (!tree(tree_.key(token))) return false;
  if (pair) source_.take();
  const bool valued = pair ? flow_value(n) : tree(tree_.add_null(token.start, ""));
  return valued && (in_map || tree(tree_.close()));
}

bool YamlReader::flow_value(int n) {
  YamlToken token;
  if (!flow_space(n)) return false;
  Mark start = source_.mark();
  if (!flow_anchor(n, token.anchor, start)) return false;
  token.start = source_.mark();
  if (at_flow_end()) return tree(tree_.add_null(start, token.anchor));
  bool is_collection = false;
  return flow_node(n, token.anchor, token, is_collection) && (is_collection || tree(tree_.add(token)));
}

bool YamlReader::flow_anchor(int n, std::string& anchor, Mark& start) {
  start = source_.mark();
  if (source_.peek() == '&' && (!anchor_name(anchor) || !flow_space(n))) return false;
  if (source_.peek() == '&') return invalid(source_.mark(), "two anchors for one value; keep one of them");
  return source_.peek() != '!' ||
         unsupported(source_.mark(),
                     "tags (!name) are not used in grid files; remove it, or put the text in quotes");
}

// A collection goes into the tree at once; a scalar or an alias is left to the caller, since it may be a key.
bool YamlReader::flow_node(int n, const std::string& anchor, YamlToken& token, bool& is_collection) {
  const char c = source_.peek();
  is_collection = c == '[' || c == '{';
  if (is_collection) return flow_collection(n, anchor);
  if (c == '"' || c == '\'') return quoted(n, token);
  if (c == '*')
    return anchor.empty()
               ? alias(token)
               : invalid(source_.mark(), "an alias cannot have an anchor of its own; remove one of them");
  if (!plain(n, true, token)) return false;
  plain_more(n, true, token);
  return true;
}

bool YamlReader::at_flow_colon(bool json_like) const {
  return source_.peek() == ':' &&
         (json_like || source_.white(1) || YamlSource::is_flow_indicator(source_.peek(1)));
}

}  // namespace sweep::grid
