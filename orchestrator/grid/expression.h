// Expressions of `where` and `derive`: text is parsed once to a typed tree over the slots of a Point, which is
// evaluated per point without allocation. Refuses unknown names, mixed types and overflow; names the place in
// the text.
//
//   or, and, not | == != < <= > >= (chained: 1 < tp <= 8), in [a, b], not in | + - | * / // % | -x
//   min(a, b, ...) max(a, b, ...) ceil(x) floor(x) | names | 12, 1.5, "bf16", true, false
//
// `/` of whole numbers is exact: where it does not come out whole the point is pruned with the equation.
// Inside ceil and floor it is the rational quotient. `//` and `%` round down, on whole numbers only.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "orchestrator/grid/scope.h"

namespace sweep::grid {

inline constexpr std::size_t kMaxExpressionBytes = 4096;
inline constexpr int kMaxDepth = 64;

// One combination: a cell per slot of the Scope, and whether it holds anything.
enum class Presence : std::uint8_t { kValue, kAbsent, kFailed };
struct Point {
  std::vector<Cell> cells;
  std::vector<Presence> held;
};

// The operators; those of numbers compute on whole or on real numbers, as the node's type says.
enum class Op : std::uint8_t {
  // clang-format off
  kConstant, kSlot, kAnd, kOr,
  kNot, kNegate, kCeil, kFloor,               // operators with one operand
  kEq, kNe, kLt, kLe, kGt, kGe, kIn,          // kIn: one item of a list
  kAdd, kSub, kMul, kDivide, kFloorDiv, kCeilDiv, kMod, kMin, kMax,
  // clang-format on
};

struct Span {
  std::uint32_t begin = 0, end = 0;  // bytes of the text
};

struct Expression {
  struct Node {
    Op op = Op::kConstant;
    Type type = Type::kBool;            // type of its value
    Span span;                          // the part of the text it computes
    Cell value{0};                      // the value of a constant; the slot of a name
    std::uint32_t left = 0, right = 0;  // the operands, by their places among the nodes
    Type of_left = type, of_right = type;
    // `left` is the comparison before this one (a < b < c), or the item before it (a in [b, c]). If that
    // decides, this one is not asked; else it compares the operand that `left` kept (b; a).
    bool linked = false;
  };
  std::string text;
  std::vector<Node> nodes;  // operands before their operator; the last is the root
  std::vector<Slot> reads;  // distinct slots, sorted
  Type type() const { return nodes.back().type; }
  Span whole() const { return {0, static_cast<std::uint32_t>(text.size())}; }
};

struct ExpressionError {
  std::size_t at = 0;  // byte of the text
  std::string message;
  ErrorKind kind = ErrorKind::kFailed;
  std::string subject = {};  // the name, word or sign that is wrong
};

// New words of the text are added to scope.words.
tl::expected<Expression, ExpressionError> parse(std::string_view text, Scope& scope);

// The distinct names in a text, as far as it can be read; for ordering `derive` before types are known.
std::vector<std::string> names_in(std::string_view text);

enum class EvalError : std::uint8_t { kNone, kNotWhole, kDivisionByZero, kAbsent, kOverflow };
struct Failure {
  EvalError trouble = EvalError::kNone;
  Span at;          // the part of the text without a value
  Cell a{0}, b{0};  // operands of an inexact division
};

// False: `failure` says why there is no value.
bool evaluate(const Expression&, const Point&, Cell& value, Failure& failure);

// The part of the text with every name replaced by its value: "256 / (3 * 2)".
std::string with_values(const Expression&, Span, const Scope&, const Point&);
// The values that the expression reads: "tp is 2, optimizer is plain".
std::string values_read(const Expression&, const Scope&, const Point&);
// A sentence without full stop: "global_batch_size / 6 = 256 / 6 = 42.67 is not whole".
std::string explain(const Failure&, const Expression&, const Scope&, const Point&);
std::string value_text(Cell, Type, const Words&);

}  // namespace sweep::grid
