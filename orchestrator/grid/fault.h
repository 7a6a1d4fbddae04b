// Fault: the error in a grid file, a recipe or a site profile: a kind and the key, axis or value that is
// wrong.
#pragma once
#include <string_view>

#include "base/expected.h"

namespace sweep::grid {

struct Fault {
  Fault(ErrorKind a_kind, std::string_view a_subject) : kind(a_kind), subject(a_subject) {}
  // The kind and the subject of another error.
  Fault(const Error& error) : kind(error.kind), subject(error.subject) {}
  ErrorKind kind;
  std::string_view subject;
};

}  // namespace sweep::grid
