#include "orchestrator/grid/yaml_tree.h"

#include <fmt/format.h>

namespace sweep::grid {

bool YamlTree::add(const YamlToken& token) {
  if (token.kind != YamlToken::Kind::kAlias) return finish(scalar(token), token.start, token.anchor);
  if (const auto found = anchors_.find(token.text); found != anchors_.end())
    return attach(found->second, token.start);
  for (const Frame& frame : frames_) {
    if (frame.anchor == token.text)
      return refuse(YamlProblem::Kind::kUnsupported, token.start, codes::kBadAlias, token.text,
                    "an alias stands inside its own anchor; spell the values out");
  }
  return refuse(YamlProblem::Kind::kInvalid, token.start, codes::kBadAlias, token.text,
                fmt::format("the alias '*{0}' has no anchor before it; write '&{0}' where it is first used",
                            token.text));
}

bool YamlTree::add_null(const Mark& at, const std::string& anchor) {
  return finish(leaf(Node::Kind::kNull, at), at, anchor);
}

bool YamlTree::open(Node::Kind kind, const Mark& at, const std::string& anchor) {
  if (frames_.size() >= kMaxNesting)
    return refuse(YamlProblem::Kind::kUnsupported, at, codes::kTooDeep, "",
                  fmt::format("nested deeper than {} levels; a grid file needs fewer than 10", kMaxNesting));
  if (!anchor.empty()) anchors_.erase(anchor);  // it means this node from here on, which is not complete
  frames_.push_back({leaf(kind, at), at, anchor, std::nullopt, {}});
  return true;
}

bool YamlTree::close() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  return finish(std::move(frame.node), frame.start, frame.anchor);
}

bool YamlTree::key(const YamlToken& token) {
  if (token.kind == YamlToken::Kind::kAlias)
    return refuse(YamlProblem::Kind::kUnsupported, token.start, codes::kBadAlias, token.text,
                  "an alias cannot be a key; write the key out");
  Frame& frame = frames_.back();
  if (const auto [first, fresh] = frame.lines.emplace(token.text, token.start.line); !fresh)
    return refuse(
        YamlProblem::Kind::kInvalid, token.start, codes::kRepeatedKey, token.text,
        fmt::format("the key '{}' is already given at line {}; keep one of them", token.text, first->second));
  if (!token.anchor.empty()) anchors_[token.anchor] = scalar(token);
  frame.pending = Entry{token.text, YamlSource::place_of(token.start), nullptr};
  return true;
}

std::shared_ptr<Node> YamlTree::leaf(Node::Kind kind, const Mark& at) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->place = YamlSource::place_of(at);
  node->offset = at.at;
  return node;
}

std::shared_ptr<Node> YamlTree::scalar(const YamlToken& token) {
  const bool quoted = token.kind == YamlToken::Kind::kQuoted;
  const bool null = !quoted && (token.text == "~" || token.text == "null" || token.text == "Null" ||
                                token.text == "NULL" || token.text.empty());
  auto node = leaf(null ? Node::Kind::kNull : Node::Kind::kScalar, token.start);
  node->text = token.text;
  node->quoted = quoted;
  return node;
}

bool YamlTree::refuse(YamlProblem::Kind kind, const Mark& at, ErrorCode code, const std::string& subject,
                      std::string message) {
  problem_ = {kind, at.at, std::move(message), code, subject};
  return false;
}

bool YamlTree::finish(std::shared_ptr<Node> node, const Mark& at, const std::string& anchor) {
  NodePtr made = std::move(node);
  if (!anchor.empty()) anchors_[anchor] = made;
  return attach(std::move(made), at);
}

bool YamlTree::attach(NodePtr node, const Mark& at) {
  if (frames_.empty()) {
    root_ = std::move(node);
    return true;
  }
  Frame& frame = frames_.back();
  frame.node->weight += node->weight;  // each is at most kMaxYamlNodes: no overflow
  if (frame.node->weight > kMaxYamlNodes)
    return refuse(YamlProblem::Kind::kUnsupported, at, codes::kTooMany, "",
                  fmt::format("more than {} values once aliases are expanded; use ranges, or fewer aliases",
                              kMaxYamlNodes));
  if (!frame.pending) {
    frame.node->items.push_back(std::move(node));
    return true;
  }
  frame.pending->value = std::move(node);
  frame.node->entries.push_back(std::move(*frame.pending));
  frame.pending.reset();
  return true;
}

}  // namespace sweep::grid
