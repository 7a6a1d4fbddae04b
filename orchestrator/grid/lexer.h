// Lexer: an expression's text as tokens. Refuses characters and numbers that mean nothing.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/grid/expression.h"

namespace sweep::grid {

struct Token {
  enum class Kind { kInt, kReal, kText, kName, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // a name, a sign (and, or, not, in are signs), or the content of a quoted word
  Cell number{0};
  Span span;
  bool is(std::string_view sign) const { return kind == Kind::kSign && text == sign; }
};

// Ends with a kEnd token.
tl::expected<std::vector<Token>, ExpressionError> lex(std::string_view text);

}  // namespace sweep::grid
