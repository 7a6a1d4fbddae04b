// Evaluates the tree of an expression for one point, and says with the point's numbers why it has no value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "bench_kernels/shape/rank_algebra.h"
#include "orchestrator/grid/expression.h"

namespace sweep::grid {
namespace {

using TreeNode = Expression::Node;

i64 floor_div(i64 a, i64 b) {
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}
i64 ceil_div(i64 a, i64 b) {
  return a / b + ((a % b != 0 && (a % b < 0) == (b < 0)) ? 1 : 0);
}

double as_real(Cell cell, Type type) {
  return type == Type::kReal ? cell.r : static_cast<double>(cell.i);
}

template <class Number>
bool compare(Op op, Number a, Number b) {
  if (op == Op::kNe) return a != b;
  if (op == Op::kLt) return a < b;
  if (op == Op::kLe) return a <= b;
  if (op == Op::kGt) return a > b;
  if (op == Op::kGe) return a >= b;
  return a == b;  // kEq, kIn
}

EvalError divide(Op op, i64 a, i64 b, i64& out) {
  if (b == 0) return EvalError::kDivisionByZero;
  if (a == std::numeric_limits<i64>::min() && b == -1) return EvalError::kOverflow;  // 2^63
  if (op == Op::kDivide && a % b != 0) return EvalError::kNotWhole;
  out = op == Op::kCeilDiv ? ceil_div(a, b) : floor_div(a, b);
  if (op == Op::kMod) out = a - out * b;  // the sign of b, as in Python
  return EvalError::kNone;
}

EvalError whole(Op op, i64 a, i64 b, i64& out) {
  bool overflow = false;
  switch (op) {
    case Op::kAdd:
      overflow = __builtin_add_overflow(a, b, &out);
      break;
    case Op::kSub:
      overflow = __builtin_sub_overflow(a, b, &out);
      break;
    case Op::kMul:
      overflow = __builtin_mul_overflow(a, b, &out);
      break;
    case Op::kMin:
    case Op::kMax:
      out = op == Op::kMin ? std::min(a, b) : std::max(a, b);
      break;
    default:
      return divide(op, a, b, out);
  }
  return overflow ? EvalError::kOverflow : EvalError::kNone;
}

EvalError real(Op op, double a, double b, double& out) {
  if (op == Op::kDivide && b == 0) return EvalError::kDivisionByZero;
  out = op == Op::kAdd   ? a + b
        : op == Op::kSub ? a - b
        : op == Op::kMul ? a * b
        : op == Op::kMin ? std::min(a, b)
        : op == Op::kMax ? std::max(a, b)
                         : a / b;
  return std::isfinite(out) ? EvalError::kNone : EvalError::kOverflow;
}

// Operators of one value.
EvalError single(const TreeNode& n, Cell& value) {
  if (n.op == Op::kNegate && n.type == Type::kInt) return whole(Op::kSub, 0, value.i, value.i);
  if (n.op == Op::kNot) {
    value.i = value.i == 0;
  } else if (n.op == Op::kNegate) {
    value.r = -value.r;
  } else {
    const double out = n.op == Op::kCeil ? std::ceil(value.r) : std::floor(value.r);
    if (!(std::abs(out) < 9.2e18)) return EvalError::kOverflow;
    value.i = static_cast<i64>(out);
  }
  return EvalError::kNone;
}

// One evaluation. False: there is no value, and the failure says why.
struct Evaluation {
  const TreeNode* nodes;
  const Point& point;
  Failure& failure;

  bool done(EvalError trouble, const TreeNode& at, Cell a = {0}, Cell b = {0}) const {
    if (trouble != EvalError::kNone) failure = {trouble, at.span, a, b};
    return trouble == EvalError::kNone;
  }

  bool value(const TreeNode& n, Cell& out) const {
    switch (n.op) {
      case Op::kConstant:
        out = n.value;
        return true;
      case Op::kSlot: {
        const auto slot = static_cast<std::size_t>(n.value.i);
        out = point.cells[slot];
        return done(point.held[slot] == Presence::kValue ? EvalError::kNone : EvalError::kAbsent, n);
      }
      case Op::kAnd:
      case Op::kOr:
        return value(nodes[n.left], out) && ((out.i != 0) == (n.op == Op::kOr) || value(nodes[n.right], out));
      case Op::kNot:
      case Op::kNegate:
      case Op::kCeil:
      case Op::kFloor:
        return value(nodes[n.left], out) && done(single(n, out), n);
      default: {
        Cell left{0};
        return n.op <= Op::kIn ? comparison(n, out, left) : computed(n, out);
      }
    }
  }

  bool computed(const TreeNode& n, Cell& out) const {
    Cell a{0}, b{0};
    if (!value(nodes[n.left], a) || !value(nodes[n.right], b)) return false;
    if (n.type == Type::kInt) return done(whole(n.op, a.i, b.i, out.i), n, a, b);
    return done(real(n.op, as_real(a, n.of_left), as_real(b, n.of_right), out.r), n);
  }

  // `kept`: the operand that the next comparison or item goes on with.
  bool comparison(const TreeNode& n, Cell& out, Cell& kept) const {
    const bool list = n.op == Op::kIn;
    if (!(n.linked ? comparison(nodes[n.left], out, kept) : value(nodes[n.left], kept))) return false;
    if (n.linked && (out.i != 0) == list) return true;
    Cell right{0};
    if (!value(nodes[n.right], right)) return false;
    const bool of_reals = n.of_left == Type::kReal || n.of_right == Type::kReal;
    out.i = of_reals ? compare(n.op, as_real(kept, n.of_left), as_real(right, n.of_right))
                     : compare(n.op, kept.i, right.i);
    if (!list) kept = right;
    return true;
  }
};

}  // namespace

bool evaluate(const Expression& e, const Point& point, Cell& value, Failure& failure) {
  Cell out{0};
  if (!Evaluation{e.nodes.data(), point, failure}.value(e.nodes.back(), out)) return false;
  value = out;
  return true;
}

std::string value_text(Cell cell, Type type, const Words& words) {
  if (type == Type::kInt) return fmt::format("{}", cell.i);
  if (type == Type::kReal) return fmt::format("{:.6g}", cell.r);
  if (type == Type::kBool) return cell.i != 0 ? "true" : "false";
  return fmt::format("\"{}\"", words.at(cell.i));
}

std::string with_values(const Expression& e, Span span, const Scope& scope, const Point& point) {
  std::string out;
  std::uint32_t copied = span.begin;
  for (const TreeNode& node : e.nodes) {
    if (node.op != Op::kSlot || node.span.begin < span.begin || node.span.end > span.end) continue;
    const auto slot = static_cast<Slot>(node.value.i);
    if (point.held[slot] != Presence::kValue) continue;
    out += e.text.substr(copied, node.span.begin - copied);
    out += value_text(point.cells[slot], scope.at(slot).type, scope.words);
    copied = node.span.end;
  }
  return out + e.text.substr(copied, span.end - copied);
}

std::string values_read(const Expression& e, const Scope& scope, const Point& point) {
  std::string out;
  std::set<Slot> seen;
  for (const TreeNode& node : e.nodes) {
    const auto slot = static_cast<Slot>(node.value.i);
    if (node.op != Op::kSlot || !seen.insert(slot).second) continue;
    const Symbol& symbol = scope.at(slot);
    const bool held = point.held[slot] == Presence::kValue;
    out +=
        fmt::format("{}{} is {}", out.empty() ? "" : ", ", symbol.name,
                    !held                        ? "null"
                    : symbol.type == Type::kText ? scope.words.at(point.cells[slot].i)
                                                 : value_text(point.cells[slot], symbol.type, scope.words));
  }
  return out.empty() ? "it is never true" : out;
}

std::string explain(const Failure& failure, const Expression& e, const Scope& scope, const Point& point) {
  const std::string part = e.text.substr(failure.at.begin, failure.at.end - failure.at.begin);
  const std::string numbers = with_values(e, failure.at, scope, point);
  switch (failure.trouble) {
    case EvalError::kNotWhole:
      return fmt::format("{} = {} = {} is not whole", part, numbers,
                         shape::quotient_text(failure.a.i, failure.b.i));
    case EvalError::kDivisionByZero:
      return fmt::format("{} = {} divides by zero", part, numbers);
    case EvalError::kAbsent:
      return fmt::format("{} has no value", part);
    case EvalError::kOverflow:
      return fmt::format("{} = {} is too large for 64 bits", part, numbers);
    case EvalError::kNone:
      break;
  }
  return "";
}

}  // namespace sweep::grid
