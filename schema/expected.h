// Expected<T>: a value, or a sentence that names what went wrong and the way out. Orchestrator and agent
// return it; exceptions stop at the edges of outside libraries.
#pragma once
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sweep {

struct Error {
  std::string message;     // a full sentence: file, line, cause and the way out where they are known
  bool disk_full = false;  // a file system, or a quota on it, takes no more
};

template <class T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace sweep
