// read_yaml: yaml-cpp over the text, and its own refusals in our words.
#include "orchestrator/grid/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <string>
#include <utility>

#include "orchestrator/grid/yaml_structure.h"
#include "orchestrator/grid/yaml_tree.h"

namespace sweep::grid {
namespace {

// Says what an error of yaml-cpp means in a grid file, and the way out.
std::string said(const std::string& error) {
  static const std::pair<std::string_view, const char*> kCures[] = {
      {YAML::ErrorMsg::MAP_VALUE,
       "a second ': ' in one value; put the key on a line of its own, or the text in quotes"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a list with '-' begins on a line of its own, or is written [a, b]"},
      {YAML::ErrorMsg::END_OF_MAP,
       "this belongs to no key; put a key with ': ' before it, indent it, or put the whole value in quotes"},
      {YAML::ErrorMsg::END_OF_SEQ, "this belongs to no item; put '- ' before it, or align it with its key"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW,
       "a ',' or the ']' is missing here; put the text in quotes if it holds a '?', a bracket or ': '"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW,
       "a ',' or the '}' is missing here; put the text in quotes if it holds a '?', a bracket or ': '"},
      {YAML::ErrorMsg::FLOW_END,
       "this bracket closes nothing that is open here; remove it, or open it before"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "this cannot begin a value here; put the text in quotes"},
      {YAML::ErrorMsg::MULTIPLE_ANCHORS, "two anchors for one value; keep one of them"},
      {YAML::ErrorMsg::CHAR_IN_BLOCK, "the text of a '|' or '>' begins on the next line, indented"},
      {YAML::ErrorMsg::INVALID_HEX,
       "an escape needs hexadecimal digits after it: \\x two, \\u four, \\U eight"},
      {YAML::ErrorMsg::ALIAS_NOT_FOUND, "a name is missing after this; put the text in quotes if it is text"},
      {YAML::ErrorMsg::ANCHOR_NOT_FOUND,
       "a name is missing after this; put the text in quotes if it is text"},
  };
  for (const auto& [theirs, ours] : kCures) {
    if (theirs == error) return ours;
  }
  if (error.starts_with(YAML::ErrorMsg::INVALID_ESCAPE))
    return "no such escape in double quotes; write '\\\\' for a backslash, or use single quotes";
  return fmt::format("{}; put the text in quotes, or write it in another way", error);
}

// Builds the tree of nodes from the events of yaml-cpp, with a cursor that goes over the text at each event.
// What yaml-cpp leaves out, adds or takes though it is wrong is met there and refused with its place.
class YamlEvents final : public YAML::EventHandler {
 public:
  explicit YamlEvents(std::string_view text) : at_(text) {}

  // Before the first event and behind the last one: no directive, no second document. They throw a
  // YamlRefusal, as each event does.
  void begin();
  NodePtr finish();
  [[noreturn]] void explain(const YAML::Exception& exception);

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark&, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

 private:
  using Style = YamlStructure::Style;

  void to_collection(YAML::anchor_t anchor);
  void close();
  void add(const YamlToken& token);

  YamlStructure at_;
  YamlTree tree_;
};

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

void YamlEvents::explain(const YAML::Exception& exception) {
  const YAML::Mark& mark = exception.mark;
  const std::string& error = exception.msg;
  YamlText& text = at_.text;
  const YamlMark there{static_cast<std::size_t>(mark.pos), static_cast<std::size_t>(mark.pos - mark.column),
                       mark.line + 1};
  at_.refuse_unclosed(there.at);
  at_.skip_space();
  at_.skip_anchor(false);  // a tag
  if (error == YAML::ErrorMsg::MAP_VALUE && at_.key_due() && text.mark().line < there.line)
    YamlStructure::no_colon(text.mark());
  text.back_to(there);
  if (text.tab_indents_line() || error == YAML::ErrorMsg::TAB_IN_INDENTATION) YamlRefusal::tab_indents(there);
  if (error == YAML::ErrorMsg::UNKNOWN_ANCHOR) {
    const std::string name(text.skip_name());
    YamlRefusal::invalid(
        there,
        fmt::format("the alias '*{0}' has no anchor before it; write '&{0}' where it is first used", name),
        ErrorKind::kInvalidValue, name);
  }
  const bool no_entry = error == YAML::ErrorMsg::END_OF_MAP || error == YAML::ErrorMsg::END_OF_SEQ;
  if (no_entry && text.column() == text.indentation()) text.aligned(std::max(at_.indent(), 0));
  YamlRefusal::invalid(there, said(error));
}

}  // namespace

tl::expected<NodePtr, YamlProblem> read_yaml(std::string_view text) try {
  YamlEvents events(text);
  events.begin();
  std::istringstream in(std::string(text) + (text.ends_with('\n') ? "" : "\n"));  // ends a block's last line
  try {
    YAML::Parser(in).HandleNextDocument(events);
  } catch (const YAML::Exception& exception) {
    events.explain(exception);
  }
  return events.finish();
} catch (YamlRefusal& refusal) {
  return tl::unexpected(std::move(refusal.problem));
}

}  // namespace sweep::grid
