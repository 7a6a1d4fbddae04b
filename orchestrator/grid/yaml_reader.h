// YamlReader: recursive descent over the text, one function per production of the specification that is read.
// Depth is bounded by the tree. Indentations are in spaces; n is the parent's (-1 at the top).
#pragma once
#include <string>
#include <string_view>

#include "orchestrator/grid/yaml_source.h"
#include "orchestrator/grid/yaml_tree.h"

namespace sweep::grid {

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) : source_(text) {}
  tl::expected<NodePtr, YamlProblem> run();

 private:
  using Mark = YamlSource::Mark;
  using Kind = YamlProblem::Kind;
  struct Context {
    int indent = -1;         // n
    bool compact = false;    // behind "- ": a map or list may begin on the same line
    bool list_here = false;  // value of a block map: a list may stand at the map's own column
  };

  bool invalid(const Mark& at, std::string message, ErrorCode code = codes::kInvalidYaml);
  bool unsupported(const Mark& at, std::string message);
  bool tab_indents(const Mark& at);
  bool tree(bool done);  // passes on what the tree refused

  bool document();
  bool document_end();

  // Blanks, comments and empty lines, up to the next content or the end.
  bool skip_lines();
  bool end_of_node();

  bool block_node(const Context& context, bool fresh);
  bool block_content(const Context& context, bool fresh, const std::string& outer, bool spaces_only);
  bool block_value(const Context& context, bool map_may_begin, const Mark& start, const std::string& outer,
                   const std::string& own);
  bool block_map(const Mark& start, const std::string& anchor, const YamlToken& first);
  bool block_map_key(int column);
  bool block_list(const Mark& start, const std::string& anchor);
  bool nothing_here(const Context& context, bool fresh) const;
  bool at_dash() const { return source_.peek() == '-' && source_.white(1); }
  bool aligned(int column);  // the line that begins here, against the column of its collection
  bool not_for_a_word();     // refuses `?`, an empty key and a tag
  bool at_block_colon() const { return source_.peek() == ':' && source_.white(1); }
  bool key_length(const YamlToken& token);

  bool flow_collection(int n, const std::string& anchor);
  bool flow_entry(int n, bool in_map, bool& is_collection);
  bool flow_value(int n);
  bool flow_space(int n);
  bool flow_node(int n, const std::string& anchor, YamlToken& token, bool& is_collection);
  bool flow_anchor(int n, std::string& anchor, Mark& start);
  bool at_flow_colon(bool json_like) const;
  bool at_flow_end() const {
    return source_.end() || std::string_view(",]}").find(source_.peek()) != std::string_view::npos;
  }

  bool anchor_name(std::string& out);
  bool alias(YamlToken& out);
  bool quoted(int n, YamlToken& out);
  bool double_quoted_escape(int n, std::string& text);
  bool fold(int n, const Mark& open, std::string& out);
  bool plain(int n, bool in_flow, YamlToken& out);  // its first line
  void plain_more(int n, bool in_flow, YamlToken& out);
  void plain_line(bool in_flow, std::string& out);
  bool plain_goes_on(char c, char next, bool in_flow) const;

  struct BlockHeader {
    int indent = 0;    // as given; 0: to be found
    char chomp = ' ';  // '-', '+' or neither
    bool folded = false;
    Mark start;
  };
  bool block_scalar(int n, YamlToken& out);
  bool block_header(BlockHeader& header);
  bool block_indent(int n, const BlockHeader& header, int& indent);
  bool block_lines(int n, int indent, const BlockHeader& header, std::string& out);

  YamlSource source_;
  YamlTree tree_;
  YamlProblem problem_;
};

}  // namespace sweep::grid
