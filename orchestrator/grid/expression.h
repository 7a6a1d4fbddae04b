// Expressions of `where` and `derive`: text is compiled once to a short typed program over the slots of a
// Point, then run per point without allocation. Refuses unknown names, mixed types and overflow; names the
// place in the text.
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

#include "orchestrator/grid/fault.h"
#include "orchestrator/grid/scope.h"

namespace sweep::grid {

inline constexpr std::size_t kMaxExpressionBytes = 4096;
inline constexpr std::size_t kMaxOps = 4096;
inline constexpr int kMaxDepth = 64;

// One combination: a cell per slot of the Scope, and whether it holds anything.
enum class Presence : std::uint8_t { kValue, kAbsent, kFailed };
struct Point {
  std::vector<Cell> cells;
  std::vector<Presence> held;
};

enum class Op : std::uint8_t {
  kConst,
  kLoad,
  kToReal,
  kToRealUnder,
  kNot,
  kJumpIfFalse,
  kJumpIfTrue,
  kNeg,
  kAdd,
  kSub,
  kMul,
  kDivExact,
  kDivReal,
  kFloorDiv,
  kMod,
  kCeilDiv,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kNegR,
  kAddR,
  kSubR,
  kMulR,
  kDivR,
  kMinR,
  kMaxR,
  kCeilR,
  kFloorR,
  kEqR,
  kNeR,
  kLtR,
  kLeR,
  kGtR,
  kGeR,
};

struct Instruction {
  Op op;
  std::uint32_t arg = 0;  // slot, index of a constant, or how many instructions a jump skips
};

struct Span {
  std::uint32_t begin = 0, end = 0;  // bytes of the text
};

struct Code {
  std::string text;
  Type type = Type::kBool;
  std::vector<Instruction> ops;
  std::vector<Cell> constants;
  std::vector<Span> spans;  // for each instruction, the part of the text it computes
  std::vector<Slot> reads;  // distinct slots, sorted
};

struct ExpressionError {
  std::size_t at = 0;  // byte of the text
  std::string message;
  ErrorKind kind = ErrorKind::kFailed;
  std::string subject = {};  // the name, word or sign that is wrong
};

// New words of the text are added to scope.words.
tl::expected<Code, ExpressionError> compile(std::string_view text, Scope& scope);

// The distinct names in a text, as far as it can be read; for ordering `derive` before types are known.
std::vector<std::string> names_in(std::string_view text);

enum class EvalError : std::uint8_t { kNone, kNotWhole, kDivisionByZero, kAbsent, kOverflow };
struct Failure {
  EvalError trouble = EvalError::kNone;
  std::uint32_t op = 0;
  Cell a{0}, b{0};  // operands of an inexact division
};

// False: `failure` says why there is no value.
bool evaluate(const Code&, const Point&, Cell& value, Failure& failure);

// The part of the text with every name replaced by its value: "256 / (3 * 2)".
std::string with_values(const Code&, Span, const Scope&, const Point&);
std::string whole_with_values(const Code&, const Scope&, const Point&);
// The values that the expression reads: "tp is 2, optimizer is plain".
std::string values_read(const Code&, const Scope&, const Point&);
// A sentence without full stop: "global_batch_size / 6 = 256 / 6 = 42.67 is not whole".
std::string explain(const Failure&, const Code&, const Scope&, const Point&);
std::string value_text(Cell, Type, const Words&);

}  // namespace sweep::grid
