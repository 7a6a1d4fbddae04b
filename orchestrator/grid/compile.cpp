// Recursive descent straight to code: operands carry their type and extent, so types are checked where they
// meet.
#include <fmt/format.h>

#include <algorithm>

#include "base/expected.h"
#include "orchestrator/grid/code_writer.h"
#include "orchestrator/grid/expression.h"
#include "orchestrator/grid/lexer.h"
#include "schema/axis_names.h"

namespace sweep::grid {
namespace {

tl::unexpected<ExpressionError> fail_at(std::size_t at, Fault fault, std::string message) {
  return tl::unexpected(ExpressionError{at, std::move(message), fault.kind, std::string(fault.subject)});
}

class Compiler : private CodeWriter {
 public:
  Compiler(std::string_view text, Scope& scope, std::vector<Token> tokens)
      : CodeWriter(std::string(text)), scope_(scope), tokens_(std::move(tokens)) {}

  tl::expected<Code, ExpressionError> run() {
    if (token().kind == Token::Kind::kEnd)
      return fail_at(0, {ErrorKind::kInvalidValue, ""}, "the expression is empty");
    const Parsed whole = any();
    if (!whole) return tl::unexpected(whole.error());
    if (token().kind != Token::Kind::kEnd) {
      return fail_here({ErrorKind::kInvalidValue, shown(token())},
                       fmt::format("an operator or the end was expected here, not '{}'", shown(token())));
    }
    code.type = whole->type;
    for (const Instruction& op : code.ops) {
      if (op.op == Op::kLoad) code.reads.push_back(static_cast<Slot>(op.arg));
    }
    std::sort(code.reads.begin(), code.reads.end());
    code.reads.erase(std::unique(code.reads.begin(), code.reads.end()), code.reads.end());
    return std::move(code);
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  Token take() { return tokens_[token().kind == Token::Kind::kEnd ? at_ : at_++]; }
  bool take_if(std::string_view sign) {
    if (!token().is(sign)) return false;
    ++at_;
    return true;
  }
  std::string shown(const Token& t) const {
    return code.text.substr(t.span.begin, t.span.end - t.span.begin);
  }
  std::string shown(Span s) const { return code.text.substr(s.begin, s.end - s.begin); }
  std::uint32_t last_end() const { return at_ == 0 ? 0 : tokens_[at_ - 1].span.end; }

  tl::unexpected<ExpressionError> fail_here(Fault fault, std::string message) const {
    return fail_at(token().span.begin, fault, std::move(message));
  }

  tl::expected<void, ExpressionError> room() const {
    if (code.ops.size() <= kMaxOps) return {};
    return fail_here({ErrorKind::kInvalidValue, ""},
                     fmt::format("the expression needs more than {} steps; split it", kMaxOps));
  }

  Parsed any() { return logic("or", Op::kJumpIfTrue); }

  // or / and: the left value decides, or is dropped for the right one.
  Parsed logic(std::string_view sign, Op jump) {
    const auto inner = [&] { return sign == "or" ? logic("and", Op::kJumpIfFalse) : negation(); };
    Parsed left = inner();
    std::vector<std::size_t> jumps;
    while (left && token().is(sign)) {
      if (left->type != Type::kBool) return needs(*left, Type::kBool, sign);
      take();
      jumps.push_back(emit_jump(jump));
      const Parsed right = inner();
      if (!right) return right;
      if (right->type != Type::kBool) return needs(*right, Type::kBool, sign);
      left = Operand{Type::kBool, {left->span.begin, right->span.end}, left->code, nullptr, {}};
    }
    for (const std::size_t j : jumps) land(j);
    return left;
  }

  Parsed negation() {
    const Span at = token().span;
    if (!take_if("not")) return comparison();
    const Deeper deeper(depth_);
    if (!deeper.ok) return too_deep();
    const std::size_t begin = code.ops.size();
    const Parsed inner = negation();
    if (!inner) return inner;
    if (inner->type != Type::kBool) return needs(*inner, Type::kBool, "not");
    const Span span{at.begin, inner->span.end};
    emit(Op::kNot, span);
    return Operand{Type::kBool, span, begin, nullptr, {}};
  }

  Parsed comparison() {
    Parsed left = arithmetic(kSums);
    if (!left) return left;
    if (token().is("in") || token().is("not")) return membership(*left);
    Operand previous = *left;
    std::vector<std::size_t> jumps;
    for (bool first = true;; first = false) {
      const Arithmetic* row = find(kComparisons);
      if (row == nullptr) break;
      take();
      if (!first) {
        jumps.push_back(emit_jump(Op::kJumpIfFalse));
        const std::size_t again = code.ops.size();
        emit_again(previous.code, previous_end_);
        previous.code = again;
      }
      Parsed right = arithmetic(kSums);
      if (!right) return right;
      const std::size_t right_code = right->code;
      const std::size_t right_end = code.ops.size();
      SWEEP_TRY(compare(previous, *right, *row));
      previous = *right;
      previous.code = right_code;
      previous_end_ = right_end;
      left = Operand{Type::kBool, {left->span.begin, right->span.end}, left->code, nullptr, {}};
      SWEEP_TRY(room());
    }
    for (const std::size_t j : jumps) land(j);
    return left;
  }

  // Emits the comparison of the two topmost values after checking that their types meet.
  tl::expected<void, ExpressionError> compare(const Operand& a, const Operand& b, const Arithmetic& row) {
    const Span span{a.span.begin, b.span.end};
    const bool equality = row.sign == "==" || row.sign == "!=";
    if (is_number(a.type) && is_number(b.type)) {
      emit(to_common(a, b) == Type::kReal ? row.real : row.whole, span);
      return {};
    }
    if (a.type != b.type) {
      return fail_at(
          span.begin, {ErrorKind::kInvalidValue, shown(span)},
          fmt::format("'{}' compares {} with {}", shown(span), type_name(a.type), type_name(b.type)));
    }
    if (!equality)
      return fail_at(span.begin, {ErrorKind::kInvalidValue, shown(span)},
                     fmt::format("'{}': only == and != compare {}", shown(span),
                                 a.type == Type::kText ? "words" : "true and false"));
    SWEEP_TRY(known_word(a, b));
    SWEEP_TRY(known_word(b, a));
    emit(row.whole, span);
    return {};
  }

  // `precision == "bf61"` can never hold: refuse it rather than drop every point. A word that was renamed is
  // compared as what it is called now.
  tl::expected<void, ExpressionError> known_word(const Operand& name, const Operand& word) {
    if (name.symbol == nullptr || !word.word || name.symbol->values.empty()) return {};
    const auto& values = name.symbol->values;
    const std::string current(current_word(name.symbol->name, *word.word));
    if (std::find(values.begin(), values.end(), current) != values.end()) {
      code.constants[code.ops[word.code].arg].i = scope_.words.id(current);
      return {};
    }
    return fail_at(word.span.begin, {ErrorKind::kInvalidValue, *word.word},
                   fmt::format("'{}' is not a value of {}{}", *word.word, name.symbol->name,
                               suggestion(*word.word, values)));
  }

  Parsed membership(const Operand& left) {
    const bool negated = take_if("not");
    if (!take_if("in"))
      return fail_here({ErrorKind::kInvalidValue, "not"},
                       "'not' stands here without 'in'; write 'x not in [a, b]' or 'not (x)'");
    if (!take_if("["))
      return fail_here({ErrorKind::kInvalidValue, "in"}, "a list follows 'in'; write it as [1, 2, 4]");
    const std::size_t left_end = code.ops.size();
    std::vector<std::size_t> jumps;
    for (bool first = true;; first = false) {
      Operand item = left;
      item.code = code.ops.size();
      if (!first) {
        jumps.push_back(emit_jump(Op::kJumpIfTrue));
        item.code = code.ops.size();
        emit_again(left.code, left_end);
      }
      const Parsed value = arithmetic(kSums);
      if (!value) return value;
      if (auto ok = compare(item, *value, kComparisons[0]); !ok) return tl::unexpected(ok.error());
      SWEEP_TRY(room());
      if (take_if("]")) break;
      if (!take_if(","))
        return fail_here({ErrorKind::kInvalidValue, ""}, "',' or ']' was expected in the list");
    }
    for (const std::size_t j : jumps) land(j);
    const Span span{left.span.begin, last_end()};
    if (negated) emit(Op::kNot, span);
    return Operand{Type::kBool, span, left.code, nullptr, {}};
  }

  template <std::size_t N>
  const Arithmetic* find(const Arithmetic (&rows)[N]) const {
    for (const Arithmetic& row : rows) {
      if (token().is(row.sign)) return &row;
    }
    return nullptr;
  }

  // A chain of + - (over * / // %), left to right.
  template <std::size_t N>
  Parsed arithmetic(const Arithmetic (&rows)[N]) {
    const auto inner = [&]() -> Parsed {
      if constexpr (N == std::size(kSums)) {
        return arithmetic(kTerms);
      } else {
        return unary();
      }
    };
    Parsed left = inner();
    while (left) {
      const Arithmetic* row = find(rows);
      if (row == nullptr) break;
      take();
      const Parsed right = inner();
      if (!right) return right;
      left = apply(*row, *left, *right);
      SWEEP_TRY(room());
    }
    return left;
  }

  Parsed apply(const Arithmetic& row, const Operand& a, const Operand& b) {
    const Span span{a.span.begin, b.span.end};
    if (!is_number(a.type)) return needs(a, Type::kReal, row.sign);
    if (!is_number(b.type)) return needs(b, Type::kReal, row.sign);
    Type type = to_common(a, b);
    if (row.whole == row.real && type == Type::kReal) {
      return fail_at(span.begin, {ErrorKind::kInvalidValue, shown(span)},
                     fmt::format("'{}': {} takes whole numbers; use floor(a / b)", shown(span), row.sign));
    }
    Op op = type == Type::kReal ? row.real : row.whole;
    if (op == Op::kDivExact && rational_) {
      op = Op::kDivReal;
      type = Type::kReal;
    }
    emit(op, span);
    return Operand{type, span, a.code, nullptr, {}};
  }

  // The common type of the two topmost values; converts the one that is not.
  Type to_common(const Operand& a, const Operand& b) {
    if (a.type == b.type) return a.type;
    emit(a.type == Type::kInt ? Op::kToRealUnder : Op::kToReal, a.type == Type::kInt ? a.span : b.span);
    return Type::kReal;
  }

  Parsed unary() {
    const Span at = token().span;
    if (!take_if("-")) return primary();
    const Deeper deeper(depth_);
    if (!deeper.ok) return too_deep();
    const Parsed inner = unary();
    if (!inner) return inner;
    if (!is_number(inner->type)) return needs(*inner, Type::kReal, "-");
    const Span span{at.begin, inner->span.end};
    emit(inner->type == Type::kReal ? Op::kNegR : Op::kNeg, span);
    return Operand{inner->type, span, inner->code, nullptr, {}};
  }

  Parsed primary() {
    const std::size_t begin = code.ops.size();
    const Token t = take();
    switch (t.kind) {
      case Token::Kind::kInt:
      case Token::Kind::kReal:
        emit_constant(t.number, t.span);
        return Operand{t.kind == Token::Kind::kInt ? Type::kInt : Type::kReal, t.span, begin, nullptr, {}};
      case Token::Kind::kText:
        emit_constant(Cell{scope_.words.id(t.text)}, t.span);
        return Operand{Type::kText, t.span, begin, nullptr, t.text};
      case Token::Kind::kName:
        return token().is("(") ? call(t) : name(t);
      case Token::Kind::kSign:
        if (t.text == "(") return parentheses(t);
        return fail_at(t.span.begin, {ErrorKind::kInvalidValue, t.text},
                       fmt::format("a value was expected here, not '{}'", t.text));
      case Token::Kind::kEnd:
        break;
    }
    return fail_at(t.span.begin, {ErrorKind::kInvalidValue, ""},
                   "the expression ends where a value was expected");
  }

  Parsed parentheses(const Token& open) {
    const Deeper deeper(depth_);
    if (!deeper.ok) return too_deep();
    Parsed inner = any();
    if (!inner) return inner;
    if (!take_if(")")) return fail_here({ErrorKind::kInvalidValue, "("}, "')' was expected here");
    inner->span = {open.span.begin, last_end()};
    return inner;
  }

  Parsed name(const Token& t) {
    const std::size_t begin = code.ops.size();
    if (t.text == "true" || t.text == "false") {
      emit_constant(Cell{t.text == "true" ? 1 : 0}, t.span);
      return Operand{Type::kBool, t.span, begin, nullptr, {}};
    }
    const auto slot = scope_.find(t.text);
    if (!slot) {
      return fail_at(t.span.begin, {ErrorKind::kUnknownName, t.text},
                     fmt::format("'{}' is not a name known here{}{}", t.text,
                                 suggestion(t.text, scope_.names()), "; a word is written in quotes"));
    }
    emit(Op::kLoad, t.span, *slot);
    return Operand{scope_.at(*slot).type, t.span, begin, &scope_.at(*slot), {}};
  }

  Parsed call(const Token& t) {
    if (t.text == "min" || t.text == "max") return extremum(t);
    if (t.text == "ceil" || t.text == "floor") return rounding(t);
    return fail_at(
        t.span.begin, {ErrorKind::kUnknownName, t.text},
        fmt::format("'{}' is not a function{}", t.text, suggestion(t.text, {"min", "max", "ceil", "floor"})));
  }

  Parsed extremum(const Token& t) {
    take();  // (
    const Deeper deeper(depth_);
    if (!deeper.ok) return too_deep();
    Parsed left = arithmetic(kSums);
    if (left && !is_number(left->type)) return needs(*left, Type::kReal, t.text);
    int count = 1;
    for (; left && take_if(","); ++count) {
      const Parsed right = arithmetic(kSums);
      if (!right) return right;
      if (!is_number(right->type)) return needs(*right, Type::kReal, t.text);
      const Type type = to_common(*left, *right);
      const bool real = type == Type::kReal;
      emit(t.text == "min" ? (real ? Op::kMinR : Op::kMin) : (real ? Op::kMaxR : Op::kMax),
           {t.span.begin, right->span.end});
      left = Operand{type, {t.span.begin, right->span.end}, left->code, nullptr, {}};
      SWEEP_TRY(room());
    }
    if (!left) return left;
    if (count < 2)
      return fail_at(t.span.begin, {ErrorKind::kInvalidValue, t.text},
                     fmt::format("{} takes two values or more", t.text));
    if (!take_if(")")) return fail_here({ErrorKind::kInvalidValue, "("}, "',' or ')' was expected here");
    left->span = {t.span.begin, last_end()};
    left->symbol = nullptr;
    return left;
  }

  Parsed rounding(const Token& t) {
    take();  // (
    const Deeper deeper(depth_);
    if (!deeper.ok) return too_deep();
    const bool outer = std::exchange(rational_, true);
    Parsed inner = arithmetic(kSums);
    rational_ = outer;
    if (!inner) return inner;
    if (!is_number(inner->type)) return needs(*inner, Type::kReal, t.text);
    if (!take_if(")")) return fail_here({ErrorKind::kInvalidValue, "("}, "')' was expected here");
    const Span span{t.span.begin, last_end()};
    if (code.ops.back().op == Op::kDivReal) {  // the last instruction is the root
      code.ops.back().op = t.text == "ceil" ? Op::kCeilDiv : Op::kFloorDiv;  // exact on 64 bits
      code.spans.back() = span;
    } else if (inner->type == Type::kReal) {
      emit(t.text == "ceil" ? Op::kCeilR : Op::kFloorR, span);
    }
    return Operand{Type::kInt, span, inner->code, nullptr, {}};
  }

  tl::unexpected<ExpressionError> needs(const Operand& operand, Type type, std::string_view by) const {
    return fail_at(operand.span.begin, {ErrorKind::kInvalidValue, shown(operand.span)},
                   fmt::format("'{}' is {}; '{}' takes {}", shown(operand.span), type_name(operand.type), by,
                               type == Type::kBool ? "true or false" : "numbers"));
  }
  tl::unexpected<ExpressionError> too_deep() const {
    return fail_here({ErrorKind::kInvalidValue, ""},
                     fmt::format("nested deeper than {} levels; split the expression", kMaxDepth));
  }

  Scope& scope_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool rational_ = false;         // inside ceil() or floor()
  std::size_t previous_end_ = 0;  // end of the code of a chained comparison's last operand
};

}  // namespace

tl::expected<Code, ExpressionError> compile(std::string_view text, Scope& scope) {
  auto tokens = lex(text);
  if (!tokens) return tl::unexpected(tokens.error());
  return Compiler(text, scope, std::move(*tokens)).run();
}

}  // namespace sweep::grid
