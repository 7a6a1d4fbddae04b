// Expected<T>: a value, or a sentence that names what went wrong and the way out. Orchestrator and agent
// return it; exceptions stop at the edges of outside libraries.
#pragma once
#include <cerrno>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sweep {

struct Error {
  std::string message;     // a full sentence: file, line, cause and the way out where they are known
  bool disk_full = false;  // nothing is wrong but that: free space, and the same command goes on
};

// errno of a write: no space, the quota, or the limit of the file's size.
inline bool is_disk_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

template <class T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace sweep

// Returns the error of an Expected<void>, or of an Expected whose value is not needed, from the function it
// stands in.
#define SWEEP_TRY(...)                                        \
  do {                                                        \
    if (auto sweep_try_ = (__VA_ARGS__); !sweep_try_)         \
      return ::tl::unexpected(std::move(sweep_try_).error()); \
  } while (false)
