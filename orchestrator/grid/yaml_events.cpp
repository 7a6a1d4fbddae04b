#include "orchestrator/grid/yaml_events.h"

namespace sweep::grid {

void YamlEvents::begin() {
  YamlText& text = at_.text;
  text.skip_lines();
  if (text.peek() == '%' && text.column() == 0)
    YamlRefusal::unsupported(text.mark(),
                             "directives (%YAML, %TAG) are not used in grid files; remove the line");
  if (text.at_marker("---")) text.take(3);
}

NodePtr YamlEvents::finish() {
  at_.text.end_of_document();
  return tree_.root();
}

void YamlEvents::add(const YamlToken& token) {
  if (at_.key_due()) {
    at_.key_was(token.start);
    return tree_.key(token);
  }
  at_.value_was();
  tree_.add(token);
}

void YamlEvents::OnNull(const YAML::Mark&, YAML::anchor_t anchor) {
  const bool key = at_.key_due();
  const auto [start, word] = at_.to_null(anchor != YAML::NullAnchor);
  if (key && word.empty()) {
    at_.refuse_unclosed(std::string::npos);
    YamlRefusal::unsupported(start, "a key is missing here; write 'key: value' on one line");
  }
  add({YamlToken::Kind::kPlain, std::string(word), start, anchor});
}

void YamlEvents::OnAlias(const YAML::Mark&, YAML::anchor_t anchor) {
  at_.to_node(false);
  const YamlMark start = at_.text.mark();
  if (at_.text.peek() != '*') YamlRefusal::misread(start);
  add({YamlToken::Kind::kAlias, std::string(at_.text.skip_name()), start, anchor});
}

void YamlEvents::OnScalar(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor,
                          const std::string& value) {
  at_.to_node(anchor != YAML::NullAnchor);
  YamlToken token{YamlToken::Kind::kPlain, value, at_.text.mark(), anchor};
  if (tag == "?") {
    at_.text.plain(value, at_.indent());
  } else {
    token.kind = YamlToken::Kind::kQuoted;
    at_.text.peek() == '"' || at_.text.peek() == '\'' ? at_.text.quoted(value, at_.indent())
                                                      : at_.text.block(value);
  }
  add(token);
}

void YamlEvents::to_collection(YAML::anchor_t anchor) {
  const bool key = at_.key_due();
  at_.to_node(anchor != YAML::NullAnchor);
  if (!key) return;
  at_.refuse_unclosed(std::string::npos);  // yaml-cpp takes it for a key at the end of the file
  YamlRefusal::unsupported(at_.text.mark(), "a key must be a word, not a list or a map");
}

void YamlEvents::OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                                 YAML::EmitterStyle::value style) {
  to_collection(anchor);
  const bool flow = style == YAML::EmitterStyle::Flow;
  if (flow ? at_.text.peek() != '[' : !at_.text.at_dash()) YamlRefusal::misread(at_.text.mark());
  tree_.open(Node::Kind::kList, at_.open(flow ? Style::kFlowList : Style::kBlockList), anchor);
}

void YamlEvents::OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                            YAML::EmitterStyle::value style) {
  to_collection(anchor);
  const bool braces = at_.text.peek() == '{' && style == YAML::EmitterStyle::Flow;
  const Style here = braces ? Style::kFlowMap : at_.in_flow() ? Style::kPair : Style::kBlockMap;
  tree_.open(Node::Kind::kMap, at_.open(here), anchor);
}

void YamlEvents::close() {
  at_.close();
  tree_.close();
}

}  // namespace sweep::grid
