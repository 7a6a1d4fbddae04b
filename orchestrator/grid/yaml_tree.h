// YamlTree: builds the tree of nodes from what the reader meets, in order. Refuses repeated keys, aliases
// that explode or stand inside their own anchor, and too deep nesting.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/grid/yaml.h"
#include "orchestrator/grid/yaml_source.h"

namespace sweep::grid {

// A scalar or an alias as written.
struct YamlToken {
  enum class Kind { kPlain, kQuoted, kAlias };  // a block scalar counts as quoted: it is text
  Kind kind = Kind::kPlain;
  std::string text;  // of an alias: its name
  YamlSource::Mark start;
  std::string anchor;  // empty: none
};

class YamlTree {
 public:
  using Mark = YamlSource::Mark;

  // Each is false when it refuses; problem() says why.
  bool add(const YamlToken& token);
  bool add_null(const Mark& at, const std::string& anchor);
  bool open(Node::Kind kind, const Mark& at, const std::string& anchor);
  bool close();
  bool key(const YamlToken& token);

  const YamlProblem& problem() const { return problem_; }
  NodePtr root() const { return root_; }

 private:
  struct Frame {
    std::shared_ptr<Node> node;
    Mark start;
    std::string anchor;
    std::optional<Entry> pending;                   // a key waiting for its value
    std::map<std::string, int, std::less<>> lines;  // of the keys so far
  };

  static std::shared_ptr<Node> leaf(Node::Kind kind, const Mark& at);
  static std::shared_ptr<Node> scalar(const YamlToken& token);
  bool refuse(YamlProblem::Kind kind, const Mark& at, ErrorCode code, const std::string& subject,
              std::string message);
  bool finish(std::shared_ptr<Node> node, const Mark& at, const std::string& anchor);
  bool attach(NodePtr node, const Mark& at);

  std::vector<Frame> frames_;
  std::map<std::string, NodePtr, std::less<>> anchors_;
  NodePtr root_;
  YamlProblem problem_;
};

}  // namespace sweep::grid
