// read_yaml: yaml-cpp over the text, and its own refusals in our words.
#include "orchestrator/grid/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <utility>

#include "orchestrator/grid/yaml_events.h"

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

}  // namespace

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
