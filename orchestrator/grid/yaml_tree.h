// YamlTree: builds the tree of nodes from what yaml-cpp reports, in order. Refuses repeated keys, aliases
// that explode or stand inside their own anchor, and too deep nesting, with a YamlRefusal.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/grid/yaml_text.h"

namespace sweep::grid {

// A scalar or an alias as written.
struct YamlToken {
  enum class Kind { kPlain, kQuoted, kAlias };  // a block scalar counts as quoted: it is text
  Kind kind = Kind::kPlain;
  std::string text;  // name of an alias
  YamlMark start;
  std::size_t anchor = 0;  // its number; 0: none. Of an alias: what it stands for
};

class YamlTree {
 public:
  void add(const YamlToken& token);
  void open(Node::Kind kind, const YamlMark& at, std::size_t anchor);
  void close();
  void key(const YamlToken& token);
  NodePtr root() const { return root_; }

 private:
  struct Frame {
    std::shared_ptr<Node> node;
    YamlMark start;
    std::size_t anchor = 0;
    std::optional<Entry> pending;                   // a key waiting for its value
    std::map<std::string, int, std::less<>> lines;  // lines of the keys so far
  };

  static std::shared_ptr<Node> leaf(Node::Kind kind, const YamlMark& at);
  static std::shared_ptr<Node> scalar(const YamlToken& token);
  void finish(NodePtr node, const YamlMark& at, std::size_t anchor);
  void attach(NodePtr node, const YamlMark& at);

  std::vector<Frame> frames_;
  std::map<std::size_t, NodePtr> anchors_;  // anchors of complete nodes
  NodePtr root_;
};

}  // namespace sweep::grid
