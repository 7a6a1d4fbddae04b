#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "bench_kernels/shape/rank_algebra.h"
#include "orchestrator/grid/expression.h"
#include "orchestrator/grid/lexer.h"

namespace sweep::grid {
namespace {

// Each open parenthesis, function or sign can hold at most four values back (compile.cpp); kMaxDepth of them
// can be open.
constexpr std::size_t kStack = 4 * kMaxDepth + 8;
constexpr i64 kLowest = std::numeric_limits<i64>::min();

i64 floor_div(i64 a, i64 b) {
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}
i64 ceil_div(i64 a, i64 b) {
  return a / b + ((a % b != 0 && (a % b < 0) == (b < 0)) ? 1 : 0);
}

// Division of whole numbers; the quotient of the lowest number by -1 has no 64 bits.
EvalError divide(Op op, i64 a, i64 b, Cell& out) {
  if (b == 0) return EvalError::kDivisionByZero;
  if (op == Op::kDivReal) {
    out.r = static_cast<double>(a) / static_cast<double>(b);
    return EvalError::kNone;
  }
  if (a == kLowest && b == -1) return EvalError::kOverflow;
  switch (op) {
    case Op::kDivExact:
      if (a % b != 0) return EvalError::kNotWhole;
      out.i = a / b;
      break;
    case Op::kFloorDiv:
      out.i = floor_div(a, b);
      break;
    case Op::kCeilDiv:
      out.i = ceil_div(a, b);
      break;
    default:
      out.i = a - floor_div(a, b) * b;
      break;  // kMod: the sign of b, as in Python
  }
  return EvalError::kNone;
}

EvalError whole(Op op, i64 a, i64 b, Cell& out) {
  switch (op) {
    case Op::kAdd:
      return __builtin_add_overflow(a, b, &out.i) ? EvalError::kOverflow : EvalError::kNone;
    case Op::kSub:
      return __builtin_sub_overflow(a, b, &out.i) ? EvalError::kOverflow : EvalError::kNone;
    case Op::kMul:
      return __builtin_mul_overflow(a, b, &out.i) ? EvalError::kOverflow : EvalError::kNone;
    case Op::kMin:
      out.i = std::min(a, b);
      return EvalError::kNone;
    case Op::kMax:
      out.i = std::max(a, b);
      return EvalError::kNone;
    case Op::kEq:
      out.i = a == b;
      return EvalError::kNone;
    case Op::kNe:
      out.i = a != b;
      return EvalError::kNone;
    case Op::kLt:
      out.i = a < b;
      return EvalError::kNone;
    case Op::kLe:
      out.i = a <= b;
      return EvalError::kNone;
    case Op::kGt:
      out.i = a > b;
      return EvalError::kNone;
    case Op::kGe:
      out.i = a >= b;
      return EvalError::kNone;
    default:
      return divide(op, a, b, out);
  }
}

EvalError real(Op op, double a, double b, Cell& out) {
  switch (op) {
    case Op::kAddR:
      out.r = a + b;
      break;
    case Op::kSubR:
      out.r = a - b;
      break;
    case Op::kMulR:
      out.r = a * b;
      break;
    case Op::kMinR:
      out.r = std::min(a, b);
      break;
    case Op::kMaxR:
      out.r = std::max(a, b);
      break;
    case Op::kDivR:
      if (b == 0) return EvalError::kDivisionByZero;
      out.r = a / b;
      break;
    case Op::kEqR:
      out.i = a == b;
      return EvalError::kNone;
    case Op::kNeR:
      out.i = a != b;
      return EvalError::kNone;
    case Op::kLtR:
      out.i = a < b;
      return EvalError::kNone;
    case Op::kLeR:
      out.i = a <= b;
      return EvalError::kNone;
    case Op::kGtR:
      out.i = a > b;
      return EvalError::kNone;
    default:
      out.i = a >= b;
      return EvalError::kNone;
  }
  return std::isfinite(out.r) ? EvalError::kNone : EvalError::kOverflow;
}

// Operators of one value.
EvalError single(Op op, Cell& top) {
  switch (op) {
    case Op::kNot:
      top.i = top.i == 0;
      return EvalError::kNone;
    case Op::kToReal:
      top.r = static_cast<double>(top.i);
      return EvalError::kNone;
    case Op::kNegR:
      top.r = -top.r;
      return EvalError::kNone;
    case Op::kNeg:
      return __builtin_sub_overflow(i64{0}, top.i, &top.i) ? EvalError::kOverflow : EvalError::kNone;
    default:
      break;  // kCeilR, kFloorR
  }
  const double rounded = op == Op::kCeilR ? std::ceil(top.r) : std::floor(top.r);
  if (!(std::abs(rounded) < 9.2e18)) return EvalError::kOverflow;
  top.i = static_cast<i64>(rounded);
  return EvalError::kNone;
}

// Operators of two values; the result replaces the left one.
EvalError pair(Op op, Cell& left, Cell b, Failure& failure) {
  const Cell a = left;
  const EvalError trouble = op >= Op::kAddR ? real(op, a.r, b.r, left) : whole(op, a.i, b.i, left);
  if (trouble != EvalError::kNone) failure.a = a, failure.b = b;
  return trouble;
}

}  // namespace

bool evaluate(const Code& code, const Point& point, Cell& value, Failure& failure) {
  Cell stack[kStack];
  std::size_t top = 0;  // values on the stack
  const Instruction* const ops = code.ops.data();
  const std::size_t count = code.ops.size();
  for (std::size_t at = 0; at < count; ++at) {
    const Instruction op = ops[at];
    switch (op.op) {
      case Op::kConst:
        stack[top++] = code.constants[op.arg];
        continue;
      case Op::kLoad:
        if (point.held[op.arg] != Presence::kValue) {
          failure = {EvalError::kAbsent, static_cast<std::uint32_t>(at), {0}, {0}};
          return false;
        }
        stack[top++] = point.cells[op.arg];
        continue;
      case Op::kJumpIfFalse:
      case Op::kJumpIfTrue:
        if ((stack[top - 1].i != 0) == (op.op == Op::kJumpIfTrue)) {
          at += op.arg;
        } else {
          --top;
        }
        continue;
      case Op::kToRealUnder:
        stack[top - 2].r = static_cast<double>(stack[top - 2].i);
        continue;
      case Op::kNot:
      case Op::kToReal:
      case Op::kNeg:
      case Op::kNegR:
      case Op::kCeilR:
      case Op::kFloorR:
        failure.trouble = single(op.op, stack[top - 1]);
        break;
      default:
        --top;
        failure.trouble = pair(op.op, stack[top - 1], stack[top], failure);
        break;
    }
    if (failure.trouble != EvalError::kNone) {
      failure.op = static_cast<std::uint32_t>(at);
      return false;
    }
  }
  value = stack[0];
  return true;
}

std::string value_text(Cell cell, Type type, const Words& words) {
  switch (type) {
    case Type::kInt:
      return fmt::format("{}", cell.i);
    case Type::kReal:
      return fmt::format("{:.6g}", cell.r);
    case Type::kBool:
      return cell.i != 0 ? "true" : "false";
    case Type::kText:
      return fmt::format("\"{}\"", words.at(cell.i));
  }
  return "";
}

std::string with_values(const Code& code, Span span, const Scope& scope, const Point& point) {
  std::string out;
  const auto tokens = lex(code.text);
  if (!tokens) return out;
  std::uint32_t copied = span.begin;
  for (const Token& token : *tokens) {
    if (token.kind != Token::Kind::kName || token.span.begin < span.begin || token.span.end > span.end)
      continue;
    const auto slot = scope.find(token.text);
    if (!slot) continue;
    out += code.text.substr(copied, token.span.begin - copied);
    out += point.held[*slot] == Presence::kValue
               ? value_text(point.cells[*slot], scope.at(*slot).type, scope.words)
               : token.text;
    copied = token.span.end;
  }
  return out + code.text.substr(copied, span.end - copied);
}

std::string values_read(const Code& code, const Scope& scope, const Point& point) {
  std::string out;
  std::set<Slot> seen;
  const auto tokens = lex(code.text);
  if (!tokens) return out;
  for (const Token& token : *tokens) {
    const auto slot = token.kind == Token::Kind::kName ? scope.find(token.text) : std::nullopt;
    if (!slot || !seen.insert(*slot).second) continue;
    const Symbol& symbol = scope.at(*slot);
    const bool held = point.held[*slot] == Presence::kValue;
    out +=
        fmt::format("{}{} is {}", out.empty() ? "" : ", ", symbol.name,
                    !held                        ? "null"
                    : symbol.type == Type::kText ? scope.words.at(point.cells[*slot].i)
                                                 : value_text(point.cells[*slot], symbol.type, scope.words));
  }
  return out.empty() ? "it is never true" : out;
}

std::string whole_with_values(const Code& code, const Scope& scope, const Point& point) {
  return with_values(code, {0, static_cast<std::uint32_t>(code.text.size())}, scope, point);
}

std::string explain(const Failure& failure, const Code& code, const Scope& scope, const Point& point) {
  const Span span = code.spans[failure.op];
  const std::string part = code.text.substr(span.begin, span.end - span.begin);
  switch (failure.trouble) {
    case EvalError::kNotWhole:
      return fmt::format("{} = {} = {} is not whole", part, with_values(code, span, scope, point),
                         shape::quotient_text(failure.a.i, failure.b.i));
    case EvalError::kDivisionByZero:
      return fmt::format("{} = {} divides by zero", part, with_values(code, span, scope, point));
    case EvalError::kAbsent:
      return fmt::format("{} has no value", part);
    case EvalError::kOverflow:
      return fmt::format("{} = {} is too large for 64 bits", part, with_values(code, span, scope, point));
    case EvalError::kNone:
      break;
  }
  return "";
}

}  // namespace sweep::grid
