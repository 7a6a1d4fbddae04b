#include "orchestrator/grid/yaml_tree.h"

#include <fmt/format.h>

namespace sweep::grid {

void YamlTree::add(const YamlToken& token) {
  if (token.kind != YamlToken::Kind::kAlias) return finish(scalar(token), token.start, token.anchor);
  if (const auto found = anchors_.find(token.anchor); found != anchors_.end())
    return attach(found->second, token.start);
  YamlRefusal::unsupported(token.start, "an alias stands inside its own anchor; spell the values out",
                           ErrorKind::kInvalidValue, token.text);
}

void YamlTree::open(Node::Kind kind, const YamlMark& at, std::size_t anchor) {
  if (frames_.size() >= kMaxNesting) YamlRefusal::too_deep(at);
  frames_.push_back({leaf(kind, at), at, anchor, std::nullopt, {}});
}

void YamlTree::close() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  finish(std::move(frame.node), frame.start, frame.anchor);
}

void YamlTree::key(const YamlToken& token) {
  if (token.kind == YamlToken::Kind::kAlias)
    YamlRefusal::unsupported(token.start, "an alias cannot be a key; write the key out",
                             ErrorKind::kInvalidValue, token.text);
  Frame& frame = frames_.back();
  if (const auto [first, fresh] = frame.lines.emplace(token.text, token.start.line); !fresh)
    YamlRefusal::invalid(
        token.start,
        fmt::format("the key '{}' is already given at line {}; keep one of them", token.text, first->second),
        ErrorKind::kConflict, token.text);
  if (token.anchor != 0) anchors_[token.anchor] = scalar(token);
  frame.pending = Entry{token.text, token.start.place(), nullptr};
}

std::shared_ptr<Node> YamlTree::leaf(Node::Kind kind, const YamlMark& at) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->place = at.place();
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

void YamlTree::finish(NodePtr node, const YamlMark& at, std::size_t anchor) {
  if (anchor != 0) anchors_[anchor] = node;
  attach(std::move(node), at);
}

void YamlTree::attach(NodePtr node, const YamlMark& at) {
  if (frames_.empty()) {
    root_ = std::move(node);
    return;
  }
  Frame& frame = frames_.back();
  frame.node->weight += node->weight;  // each is at most kMaxYamlNodes: no overflow
  if (frame.node->weight > kMaxYamlNodes)
    YamlRefusal::unsupported(
        at,
        fmt::format("more than {} values once aliases are expanded; use ranges, or fewer aliases",
                    kMaxYamlNodes),
        ErrorKind::kInvalidValue);
  if (!frame.pending) {
    frame.node->items.push_back(std::move(node));
    return;
  }
  frame.pending->value = std::move(node);
  frame.node->entries.push_back(std::move(*frame.pending));
  frame.pending.reset();
}

}  // namespace sweep::grid
