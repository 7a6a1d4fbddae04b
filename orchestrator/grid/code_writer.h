// CodeWriter: appends instructions to a Code, each with the part of the text it computes.
#pragma once
#include <cstddef>
#include <utility>

#include "orchestrator/grid/expression.h"

namespace sweep::grid {

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
