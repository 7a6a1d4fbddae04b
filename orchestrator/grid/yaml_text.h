// YamlText: the text of a YAML file with a cursor that goes over what yaml-cpp read in it, and refuses what stands
// there and means something else.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/grid/yaml.h"
#include "orchestrator/grid/yaml_source.h"

namespace sweep::grid {

// Thrown through yaml-cpp, which knows no other way to stop; read_yaml() catches it.
struct YamlRefusal {
  YamlProblem problem;

  [[noreturn]] static void invalid(const YamlMark& at, std::string message,
                                   ErrorKind error = ErrorKind::kInvalidValue, std::string subject = {});
  [[noreturn]] static void unsupported(const YamlMark& at, std::string message,
                                       ErrorKind error = ErrorKind::kUnsupported, std::string subject = {});
  [[noreturn]] static void tab_indents(const YamlMark& at);
  [[noreturn]] static void too_deep(const YamlMark& at);
  [[noreturn]] static void misread(const YamlMark& at);  // yaml-cpp and the text disagree
};

class YamlText : public YamlSource {
 public:
  using YamlSource::YamlSource;

  // Blanks, comments and line breaks, up to the next content or the end; within brackets a new line is indented
  // by more than n.
  void skip_lines();
  void skip_flow_lines(int n);

  void aligned(int column);              // a line begins here, at this column
  void end_of_document();                // nothing follows
  void expect(char sign, char closing);  // `sign` stands here, or `closing` is missing
  std::string_view skip_name();          // name of an anchor or an alias, with the sign before it
  bool at_dash() const { return peek() == '-' && white(1); }
  bool at_block_colon() const { return peek() == ':' && white(1); }

  // The cursor goes over a scalar whose value is `value`. What stands there must mean exactly that.
  void plain(std::string_view value, int n);
  void quoted(std::string_view value, int n);
  void block(std::string_view value);

  // The brackets that are open at byte `until`, of those open here and those in between. A quote that is open
  // there is refused, and so are too many brackets.
  std::vector<YamlMark> open_brackets(std::vector<YamlMark> open, int n, std::size_t until);
  [[noreturn]] void never_closed(const YamlMark& open);

 private:
  bool value_begins() const;
  std::string folded();  // blanks and line breaks within a scalar, as YAML folds them
  void walk_quoted(std::string_view* value, int n);
  void walk_escape(std::string_view* value);
};

}  // namespace sweep::grid
