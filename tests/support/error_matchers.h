// Matchers of an Error: what is wrong, with what, and where. They look at its fields; only
// Suggests looks at its message.
#pragma once
#include <gmock/gmock.h>

#include <optional>
#include <ostream>
#include <string>

#include "base/expected.h"
#include "tests/support/must.h"

namespace sweep {

inline void PrintTo(ErrorKind kind, std::ostream* out) {
  *out << word_of(kind);
}

inline void PrintTo(const Error& error, std::ostream* out) {
  *out << ::testing::PrintToString(error.kind) << " of '" << error.subject << "' at " << error.file << ':'
       << error.line << ':' << error.column << " (" << error.message << ')';
}

inline ::testing::Matcher<const Error&> IsError(ErrorKind kind) {
  return ::testing::Field("kind", &Error::kind, kind);
}

inline ::testing::Matcher<const Error&> IsError(ErrorKind kind, const std::string& subject) {
  return ::testing::AllOf(IsError(kind), ::testing::Field("subject", &Error::subject, subject));
}

inline ::testing::Matcher<const Error&> At(int line) {
  return ::testing::Field("line", &Error::line, line);
}

inline ::testing::Matcher<const Error&> At(int line, int column) {
  return ::testing::AllOf(At(line), ::testing::Field("column", &Error::column, column));
}

// "did you mean 'word'?"
inline ::testing::Matcher<const Error&> Suggests(const std::string& word) {
  return ::testing::Field("message", &Error::message, ::testing::HasSubstr("did you mean '" + word + "'?"));
}

// A row of a table of texts that are refused.
struct Refused {
  std::string text;
  int line, column;
  ErrorKind kind;
  std::optional<std::string> subject = {};  // nullopt: not looked at
  std::string suggested = {};               // empty: not looked at

  ::testing::Matcher<const Error&> error() const {
    const auto what = subject ? IsError(kind, *subject) : IsError(kind);
    if (suggested.empty()) return ::testing::AllOf(At(line, column), what);
    return ::testing::AllOf(At(line, column), what, Suggests(suggested));
  }
};

// "g.yaml:3:1:", as messages begin.
inline std::string place_of(const Error& error) {
  return error.file + ':' + std::to_string(error.line) + ':' + std::to_string(error.column) + ':';
}

// The error of a call that must fail; an empty one (and a failure) if it does not.
template <class Result>
Error error_in(const Result& result) {
  EXPECT_FALSE(result);
  return result ? Error() : result.error();
}

}  // namespace sweep
