// Expected<T>: a value, or an Error that says what went wrong and the way out. Orchestrator and agent return
// it; exceptions stop at the edges of outside libraries.
#pragma once
#include <cerrno>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "base/error_kind.h"

namespace sweep {

struct Error {
  std::string message;  // a full sentence: file, line, cause and the way out where they are known
  ErrorKind kind = ErrorKind::kFailed;  // decisions and tests compare this, never the message
  std::string subject = {};             // the key, axis, value or path that is wrong; empty: no single one
  std::string file = {};                // place of the error, if a text is wrong
  int line = 0, column = 0;             // counted from 1; 0: not in a text
};

// errno of a write: no space, the quota, or the limit of the file's size.
inline bool is_disk_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

template <class T>
using Expected = tl::expected<T, Error>;

// base/fail.h: with the values of a message.
inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

inline tl::unexpected<Error> fail(ErrorKind kind, std::string_view subject, std::string message) {
  return tl::unexpected<Error>(Error{std::move(message), kind, std::string(subject)});
}

// The same error, told with what the caller knows.
inline Error retold(Error error, std::string message) {
  error.message = std::move(message);
  return error;
}

}  // namespace sweep

// Returns the error of an Expected<void>, or of an Expected whose value is not needed, from the function it
// stands in.
#define SWEEP_TRY(...)                                        \
  do {                                                        \
    if (auto sweep_try_ = (__VA_ARGS__); !sweep_try_)         \
      return ::tl::unexpected(std::move(sweep_try_).error()); \
  } while (false)

// Gives the value of an Expected to a variable, new or old, or returns the error from the function it stands in:
// SWEEP_GET(const auto names, names_of(text));
#define SWEEP_GET(declaration, ...) SWEEP_GET_AT(__LINE__, declaration, __VA_ARGS__)
#define SWEEP_GET_AT(line, declaration, ...) SWEEP_GET_BY(line, declaration, __VA_ARGS__)
#define SWEEP_GET_BY(line, declaration, ...)                                           \
  auto sweep_got_##line = (__VA_ARGS__);                                               \
  if (!sweep_got_##line) return ::tl::unexpected(std::move(sweep_got_##line).error()); \
  declaration = *std::move(sweep_got_##line)
