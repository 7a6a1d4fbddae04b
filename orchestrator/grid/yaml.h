// YAML 1.2 as a grid file uses it: one document of maps with words as keys, lists and scalars, in block and
// flow style, with anchors and aliases. Reads by the specification and refuses the rest: what is not YAML
// (kInvalid), and what is YAML but has no use here (kUnsupported): tags, directives, further documents, `?`
// and keys that are no words.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "orchestrator/grid/document.h"

namespace sweep::grid {

struct YamlProblem {
  enum class Kind { kInvalid, kUnsupported };
  Kind kind = Kind::kInvalid;
  std::size_t offset = 0;  // byte of the text
  std::string message;     // cause and way out
  ErrorKind error = ErrorKind::kInvalidValue;
  std::string subject = {};  // the key or the name of the alias
};

// `text` is UTF-8 without control characters; its line breaks are '\n'. No document at all: a null pointer.
tl::expected<NodePtr, YamlProblem> read_yaml(std::string_view text);

}  // namespace sweep::grid
