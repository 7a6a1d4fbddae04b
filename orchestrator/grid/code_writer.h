// CodeWriter: appends instructions to a Code, each with the part of the text it computes; and the operators
// and operands it knows.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "orchestrator/grid/expression.h"

namespace sweep::grid {

// An operator of two values: its sign, and its instruction on whole and on real numbers.
struct Arithmetic {
  std::string_view sign;
  Op whole, real;
};
inline constexpr Arithmetic kSums[] = {{"+", Op::kAdd, Op::kAddR}, {"-", Op::kSub, Op::kSubR}};
inline constexpr Arithmetic kTerms[] = {{"*", Op::kMul, Op::kMulR},
                                        {"/", Op::kDivExact, Op::kDivR},
                                        {"//", Op::kFloorDiv, Op::kFloorDiv},
                                        {"%", Op::kMod, Op::kMod}};
inline constexpr Arithmetic kComparisons[] = {{"==", Op::kEq, Op::kEqR}, {"!=", Op::kNe, Op::kNeR},
                                              {"<", Op::kLt, Op::kLtR},  {"<=", Op::kLe, Op::kLeR},
                                              {">", Op::kGt, Op::kGtR},  {">=", Op::kGe, Op::kGeR}};

struct Operand {
  Type type = Type::kInt;
  Span span;
  std::size_t code = 0;             // its first instruction
  const Symbol* symbol = nullptr;   // when it is a bare name
  std::optional<std::string> word;  // when it is a quoted word
};
using Parsed = tl::expected<Operand, ExpressionError>;

inline bool is_number(Type type) {
  return type == Type::kInt || type == Type::kReal;
}

// One more level of nesting for its lifetime; not ok beyond kMaxDepth.
struct Deeper {
  explicit Deeper(int& depth) : counter(depth), ok(++counter <= kMaxDepth) {}
  ~Deeper() { --counter; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  int& counter;
  bool ok;
};

class CodeWriter {
 public:
  explicit CodeWriter(std::string text) { code.text = std::move(text); }

  void emit(Op op, Span span, std::uint32_t arg = 0) {
    code.ops.push_back({op, arg});
    code.spans.push_back(span);
  }
  void emit_constant(Cell cell, Span span) {
    emit(Op::kConst, span, static_cast<std::uint32_t>(code.constants.size()));
    code.constants.push_back(cell);
  }
  // Evaluates an operand once more: for `a < b < c` and `a in [b, c]`. Jumps are relative, so a copy is as
  // good.
  void emit_again(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) emit(code.ops[i].op, code.spans[i], code.ops[i].arg);
  }
  std::size_t emit_jump(Op op) {
    emit(op, {});
    return code.ops.size() - 1;
  }
  void land(std::size_t jump) { code.ops[jump].arg = static_cast<std::uint32_t>(code.ops.size() - jump - 1); }

  Code code;
};

}  // namespace sweep::grid
