// Block style: maps and lists by indentation, and the document around them (YAML 1.2.2, chapters 8 and 9).
#include <fmt/format.h>

#include "orchestrator/grid/yaml_reader.h"

namespace sweep::grid {
namespace {

constexpr std::size_t kMaxKeyBytes = 1024;  // of a key that has no '?' before it (7.4.2)

}  // namespace

tl::expected<NodePtr, YamlProblem> read_yaml(std::string_view text) {
  return YamlReader(text).run();
}

tl::expected<NodePtr, YamlProblem> YamlReader::run() {
  if (!document()) return tl::unexpected(problem_);
  return tree_.root();
}

bool YamlReader::invalid(const Mark& at, std::string message, ErrorCode code) {
  problem_ = {Kind::kInvalid, at.at, std::move(message), code};
  return false;
}

bool YamlReader::unsupported(const Mark& at, std::string message) {
  problem_ = {Kind::kUnsupported, at.at, std::move(message), codes::kUnusedYaml};
  return false;
}

bool YamlReader::tab_indents(const Mark& at) {
  return invalid(at, "a tab in the indentation; YAML indents with spaces only", codes::kIndentation);
}

bool YamlReader::tree(bool done) {
  if (!done) problem_ = tree_.problem();
  return done;
}

bool YamlReader::document() {
  if (!skip_lines()) return false;
  if (source_.peek() == '%' && source_.column() == 0)
    return unsupported(source_.mark(),
                       "directives (%YAML, %TAG) are not used in grid files; remove the line");
  const bool marked = source_.at_marker("---");
  if (marked) source_.take(3);
  if (!marked && (source_.end() || source_.at_marker())) return document_end();
  return block_node({}, !marked) && document_end();
}

bool YamlReader::document_end() {
  if (!skip_lines()) return false;
  const bool ended = source_.at_marker("...");
  while (source_.at_marker("...")) {
    source_.take(3);
    if (!end_of_node() || !skip_lines()) return false;
  }
  if (source_.end()) return true;
  if (ended || source_.at_marker("---"))
    return unsupported(source_.mark(), "a second document starts here; a grid file holds one");
  if (source_.column() != source_.indentation()) return tab_indents(source_.mark());
  return invalid(source_.mark(),
                 "this line belongs to nothing above it; align it with the keys it stands beside, and close "
                 "what is open above");
}

bool YamlReader::skip_lines() {
  while (true) {
    source_.skip_blanks();
    if (source_.peek() == '#') {
      if (!YamlSource::is_white(source_.before()))
        return invalid(source_.mark(), "a comment needs a space before its '#'");
      source_.skip_line();
    }
    if (!source_.at_break()) return true;
    source_.take();
  }
}

// Behind a value nothing may follow on its line but a comment.
bool YamlReader::end_of_node() {
  if (source_.column() == 0) return true;
  source_.skip_blanks();
  if (source_.end() || source_.at_break()) return true;
  if (source_.peek() == '#' && YamlSource::is_blank(source_.before())) return true;
  if (source_.peek() == '#') return invalid(source_.mark(), "a comment needs a space before its '#'");
  if (at_block_colon())
    return invalid(source_.mark(),
                   "a second ': ' in one value; put the key on a line of its own, or the text in quotes");
  return invalid(source_.mark(),
                 "text after the end of a value; put the whole value in quotes, or "
                 "separate the values with commas in [ ]");
}

bool YamlReader::nothing_here(const Context& context, bool fresh) const {
  if (source_.end()) return true;
  if (!fresh) return false;
  if (source_.at_marker()) return true;
  if (source_.indentation() > context.indent) return false;
  return !(context.list_here && at_dash() && source_.column() == context.indent);
}

bool YamlReader::block_node(const Context& context, bool fresh) {
  const Mark before = source_.mark();
  if (!skip_lines()) return false;
  fresh = fresh || source_.line_start() != before.line_start;
  if (nothing_here(context, fresh)) return tree(tree_.add_null(before, ""));
  const bool spaces_only = fresh ? source_.column() == source_.indentation()
                                 : source_.from(before.at).find('\t') == std::string_view::npos;
  return block_content(context, fresh, "", spaces_only);
}

// `outer`: an anchor on a line before. An anchor on this line belongs to the key, where a key follows.
bool YamlReader::block_content(const Context& context, bool fresh, const std::string& outer,
                               bool spaces_only) {
  const Mark start = source_.mark();
  std::string own;
  if (source_.peek() == '&') {
    if (!anchor_name(own) || !skip_lines()) return false;
    if (source_.line_start() != start.line_start || source_.end()) {
      if (!outer.empty()) return invalid(start, "two anchors for one value; keep one of them");
      if (nothing_here(context, true)) return tree(tree_.add_null(start, own));
      return block_content(context, true, own, source_.column() == source_.indentation());
    }
  }
  if (!not_for_a_word()) return false;
  const bool may_begin = fresh || context.compact;
  if (at_dash()) {
    if (!may_begin || !own.empty())
      return invalid(source_.mark(), "a list with '-' begins on a line of its own, or is written [a, b]");
    if (!spaces_only) return tab_indents(start);
    return block_list(source_.mark(), outer);
  }
  if (may_begin && !spaces_only) {
    const Mark here = source_.mark();
    if (!block_value(context, false, start, outer, own)) {
      if (source_.line_start() == here.line_start && at_block_colon()) return tab_indents(start);
      return false;
    }
    return true;
  }
  return block_value(context, may_begin, start, outer, own);
}

// A scalar, an alias or a flow collection; or, where the scalar is a key, the map that begins with it.
bool YamlReader::block_value(const Context& context, bool map_may_begin, const Mark& start,
                             const std::string& outer, const std::string& own) {
  const auto one_anchor = [&] {
    return outer.empty() || own.empty() || invalid(start, "two anchors for one value; keep one of them");
  };
  const int n = context.indent;
  YamlToken token;
  token.start = source_.mark();
  const char c = source_.peek();
  if (c == '|' || c == '>') {
    if (!one_anchor() || !block_scalar(n, token)) return false;
    token.anchor = own.empty() ? outer : own;
    return tree(tree_.add(token));
  }
  if (c == '[' || c == '{') {
    if (!flow_collection(n, own.empty() ? outer : own)) return false;
    source_.skip_blanks();
    if (at_block_colon()) return unsupported(token.start, "a key must be a word, not a list or a map");
    return one_anchor() && end_of_node();
  }
  if (c == '"' || c == '\'' ? !quoted(n, token) : c == '*' ? !alias(token) : !plain(n, false, token))
    return false;
  const Mark behind = source_.mark();
  source_.skip_blanks();
  if (map_may_begin && at_block_colon() && behind.line == token.start.line) {
    token.anchor = own;
    return block_map(start, outer, token);
  }
  source_.back_to(behind);
  if (token.kind == YamlToken::Kind::kPlain) plain_more(n, false, token);
  if (!one_anchor()) return false;
  if (token.kind == YamlToken::Kind::kAlias && !(own.empty() && outer.empty()))
    return invalid(start, "an alias cannot have an anchor of its own; remove one of them");
  token.anchor = own.empty() ? outer : own;
  return tree(tree_.add(token)) && end_of_node();
}

bool YamlReader::key_length(const YamlToken& token) {
  return source_.at() - token.start.at <= kMaxKeyBytes ||
         invalid(token.start, fmt::format("a key has at most {} bytes", kMaxKeyBytes), codes::kTooLong);
}

// The cursor is at the ':' of the first key.
bool YamlReader::block_map(const Mark& start, const std::string& anchor, const YamlToken& first) {
  const int column = YamlSource::column_of(start);
  if (!tree(tree_.open(Node::Kind::kMap, start, anchor)) || !key_length(first) || !tree(tree_.key(first)))
    return false;
  while (true) {
    source_.take();
    if (!block_node({column, false, true}, false) || !skip_lines()) return false;
    if (source_.end() || source_.at_marker() || source_.indentation() < column) break;
    if (!aligned(column) || !block_map_key(column)) return false;
  }
  return tree(tree_.close());
}

bool YamlReader::aligned(int column) {
  if (source_.column() != source_.indentation()) return tab_indents(source_.mark());
  return source_.column() == column ||
         invalid(source_.mark(),
                 fmt::format("indented by {} where the lines it belongs to are indented by {}; align them",
                             source_.column(), column),
                 codes::kIndentation);
}

bool YamlReader::block_map_key(int column) {
  YamlToken token;
  if (source_.peek() == '&') {
    if (!anchor_name(token.anchor)) return false;
    source_.skip_blanks();
  }
  if (!not_for_a_word()) return false;
  token.start = source_.mark();
  const char c = source_.peek();
  if (at_dash())
    return invalid(token.start, "an item of a list where a key is due; indent it, or give it a key");
  if (c == '[' || c == '{') return unsupported(token.start, "a key must be a word, not a list or a map");
  if (c == '"' || c == '\'' ? !quoted(column, token)
      : c == '*'            ? !alias(token)
                            : !plain(column, false, token))
    return false;
  source_.skip_blanks();
  if (!at_block_colon() || source_.mark().line != token.start.line)
    return invalid(token.start, "no ': ' after this key; write 'key: value' on one line");
  return key_length(token) && tree(tree_.key(token));
}

bool YamlReader::not_for_a_word() {
  if (source_.peek() == '!')
    return unsupported(source_.mark(),
                       "tags (!name) are not used in grid files; remove it, or put the text in quotes");
  if (source_.peek() == '?' && source_.white(1))
    return unsupported(source_.mark(), "keys with '?' are not used in grid files; write 'key: value'");
  return !at_block_colon() || unsupported(source_.mark(), "a key is missing before this ':'");
}

bool YamlReader::block_list(const Mark& start, const std::string& anchor) {
  const int column = YamlSource::column_of(start);
  if (!tree(tree_.open(Node::Kind::kList, start, anchor))) return false;
  while (true) {
    source_.take();
    if (!block_node({column, true, false}, false) || !skip_lines()) return false;
    if (source_.end() || source_.at_marker() || source_.indentation() < column) break;
    if (source_.indentation() == column && source_.column() == column && !at_dash()) break;
    if (!aligned(column)) return false;
  }
  return tree(tree_.close());
}

}  // namespace sweep::grid
