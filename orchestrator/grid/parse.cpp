// Recursive descent to a tree: every node is typed when it is made, so types are checked where they meet.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/fail.h"
#include "orchestrator/grid/expression.h"
#include "orchestrator/grid/lexer.h"

namespace sweep::grid {
namespace {

// An operator of two values, and whether they are flags or numbers.
struct Operator {
  std::string_view sign;
  Op op;
  Type takes = Type::kReal;
};
constexpr Operator kOr[] = {{"or", Op::kOr, Type::kBool}};
constexpr Operator kAnd[] = {{"and", Op::kAnd, Type::kBool}};
constexpr Operator kComparisons[] = {{"==", Op::kEq}, {"!=", Op::kNe}, {"<", Op::kLt},
                                     {"<=", Op::kLe}, {">", Op::kGt},  {">=", Op::kGe}};
constexpr Operator kSums[] = {{"+", Op::kAdd}, {"-", Op::kSub}};
constexpr Operator kTerms[] = {{"*", Op::kMul}, {"/", Op::kDivide}, {"//", Op::kFloorDiv}, {"%", Op::kMod}};

struct Operand {
  std::uint32_t node = 0;
  Type type = Type::kInt;
  Span span;  // place with its parentheses
};

bool is_number(Type type) {
  return type == Type::kInt || type == Type::kReal;
}

// The first error is kept and skips the rest of the text; what is parsed after it does not matter.
class Parser {
  using Rule = Operand (Parser::*)();
  using Node = Expression::Node;

 public:
  Parser(std::string_view text, Scope& scope, std::vector<Token> tokens)
      : scope_(scope), tokens_(std::move(tokens)) {
    tree_.text = text;
  }

  tl::expected<Expression, ExpressionError> run() {
    if (tokens_.size() == 1) fail(0, "", "the expression is empty");
    disjunction();
    if (token().kind != Token::Kind::kEnd)
      fail_here(shown(token().span),
                fmt::format("an operator or the end was expected here, not '{}'", shown(token().span)));
    if (error_) return tl::unexpected(*error_);
    for (const Node& node : tree_.nodes) {
      if (node.op == Op::kSlot) tree_.reads.push_back(static_cast<Slot>(node.value.i));
    }
    std::ranges::sort(tree_.reads);
    tree_.reads.erase(std::unique(tree_.reads.begin(), tree_.reads.end()), tree_.reads.end());
    return std::move(tree_);
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  bool take_if(std::string_view sign) {
    if (!token().is(sign)) return false;
    ++at_;
    return true;
  }
  const Operator* take_any(std::span<const Operator> operators) {
    const auto found = std::ranges::find_if(operators, [&](const auto& each) { return take_if(each.sign); });
    return found == operators.end() ? nullptr : &*found;
  }
  std::string shown(Span s) const { return tree_.text.substr(s.begin, s.end - s.begin); }
  Span since(Span begin) const { return {begin.begin, at_ == 0 ? 0 : tokens_[at_ - 1].span.end}; }

  Operand fail(std::size_t at, std::string_view subject, std::string message,
               ErrorKind kind = ErrorKind::kInvalidValue) {
    if (!error_) error_ = {at, std::move(message), kind, std::string(subject)};
    at_ = tokens_.size() - 1;
    return add({});
  }
  Operand fail_here(std::string_view subject, std::string message) {
    return fail(token().span.begin, subject, std::move(message));
  }
  void needs(const Operand& operand, Type type, std::string_view by) {
    if (type == Type::kBool ? operand.type == type : is_number(operand.type)) return;
    const std::string text = shown(operand.span);
    fail(operand.span.begin, text,
         fmt::format("'{}' is {}; '{}' takes {}", text, type_name(operand.type), by,
                     type == Type::kBool ? "true or false" : "numbers"));
  }
  void mismatch(Span span, std::string_view why) {
    fail(span.begin, shown(span), fmt::format("'{}'{}", shown(span), why));
  }

  Operand add(const Node& node) {
    tree_.nodes.push_back(node);
    return {static_cast<std::uint32_t>(tree_.nodes.size() - 1), node.type, node.span};
  }
  Operand add(Op op, Type type, Span span, const Operand& operand) {
    return add({op, type, span, {0}, operand.node, 0, operand.type});
  }

  // One more level of nesting.
  Operand nested(Rule rule) {
    if (depth_ == kMaxDepth)
      return fail_here("", fmt::format("nested deeper than {} levels; split the expression", kMaxDepth));
    ++depth_;
    const Operand inner = (this->*rule)();
    --depth_;
    return inner;
  }

  Operand disjunction() { return chain(kOr, &Parser::conjunction); }
  Operand conjunction() { return chain(kAnd, &Parser::negation); }
  Operand negation() {
    return prefix({"not", Op::kNot, Type::kBool}, &Parser::negation, &Parser::comparison);
  }
  Operand sum() { return chain(kSums, &Parser::term); }
  Operand term() { return chain(kTerms, &Parser::unary); }
  Operand unary() { return prefix({"-", Op::kNegate}, &Parser::unary, &Parser::primary); }

  // Operators of one rank, left to right.
  Operand chain(std::span<const Operator> operators, Rule operand) {
    Operand left = (this->*operand)();
    while (const Operator* const by = take_any(operators)) {
      if (by->takes == Type::kBool) needs(left, by->takes, by->sign);
      left = apply(*by, left, (this->*operand)());
    }
    return left;
  }

  Operand apply(const Operator& by, const Operand& a, const Operand& b) {
    const Span span{a.span.begin, b.span.end};
    needs(a, by.takes, by.sign);
    needs(b, by.takes, by.sign);
    Type type = a.type == b.type ? a.type : Type::kReal;
    if (type == Type::kReal && (by.op == Op::kFloorDiv || by.op == Op::kMod))
      mismatch(span, fmt::format(": {} takes whole numbers; use floor(a / b)", by.sign));
    if (by.op == Op::kDivide && rational_) type = Type::kReal;
    return add({by.op, type, span, {0}, a.node, b.node, a.type, b.type});
  }

  Operand prefix(const Operator& by, Rule again, Rule otherwise) {
    const Span begin = token().span;
    if (!take_if(by.sign)) return (this->*otherwise)();
    const Operand inner = nested(again);
    needs(inner, by.takes, by.sign);
    return add(by.op, inner.type, {begin.begin, inner.span.end}, inner);
  }

  Operand comparison() {
    Operand last = sum();
    if (token().is("in") || token().is("not")) return membership(last);
    Operand kept = last;
    while (const Operator* const by = take_any(kComparisons)) {
      const Operand right = sum();
      last = link(by->op, last, kept, right);
      kept = right;
    }
    return last;
  }

  Operand membership(const Operand& left) {
    const bool negated = take_if("not");
    if (!take_if("in"))
      return fail_here("not", "'not' stands here without 'in'; write 'x not in [a, b]' or 'not (x)'");
    if (!take_if("[")) return fail_here("in", "a list follows 'in'; write it as [1, 2, 4]");
    Operand last = left;
    do last = link(Op::kIn, last, left, sum());
    while (take_if(","));
    if (!take_if("]")) fail_here("", "',' or ']' was expected in the list");
    last.span = since(left.span);
    return negated ? add(Op::kNot, Type::kBool, last.span, last) : last;
  }

  // Compares a and b. `last`: a, or the comparison or the item that kept a.
  Operand link(Op op, const Operand& last, const Operand& a, const Operand& b) {
    const Span span{a.span.begin, b.span.end};
    const bool numbers = is_number(a.type) && is_number(b.type);
    if (!numbers && a.type != b.type)
      mismatch(span, fmt::format(" compares {} with {}", type_name(a.type), type_name(b.type)));
    if (!numbers && op != Op::kEq && op != Op::kNe && op != Op::kIn)
      mismatch(span, fmt::format(": only == and != compare {}",
                                 a.type == Type::kText ? "words" : "true and false"));
    known_word(a, b);
    known_word(b, a);
    Operand out = add({op, Type::kBool, span, {0}, last.node, b.node, a.type, b.type, last.node != a.node});
    out.span.begin = last.span.begin;
    return out;
  }

  // `precision == "bf61"` can never hold: refuse it rather than drop every point.
  void known_word(const Operand& name, const Operand& word) {
    const Node& slot = tree_.nodes[name.node];
    const Node constant = tree_.nodes[word.node];
    if (slot.op != Op::kSlot || constant.op != Op::kConstant || constant.type != Type::kText) return;
    const Symbol& symbol = scope_.at(static_cast<Slot>(slot.value.i));
    if (symbol.values.empty()) return;
    const std::string text = shown({constant.span.begin + 1, constant.span.end - 1});  // without quotes
    if (!takes(symbol, text))
      fail(word.span.begin, text,
           fmt::format("'{}' is not a value of {}{}", text, symbol.name, suggestion(text, symbol.values)));
  }

  Operand constant(Type type, Cell value, Span span) { return add({Op::kConstant, type, span, value}); }

  Operand primary() {
    const Token t = token();
    if (t.kind == Token::Kind::kEnd) return fail_here("", "the expression ends where a value was expected");
    if (t.kind == Token::Kind::kSign && t.text != "(")
      return fail_here(t.text, fmt::format("a value was expected here, not '{}'", t.text));
    ++at_;
    if (t.kind == Token::Kind::kInt) return constant(Type::kInt, t.number, t.span);
    if (t.kind == Token::Kind::kReal) return constant(Type::kReal, t.number, t.span);
    if (t.kind == Token::Kind::kText) return constant(Type::kText, {scope_.words.id(t.text)}, t.span);
    if (t.kind == Token::Kind::kName) return take_if("(") ? call(t) : name(t);
    Operand inner = nested(&Parser::disjunction);
    if (!take_if(")")) fail_here("(", "')' was expected here");
    inner.span = since(t.span);
    return inner;
  }

  Operand name(const Token& t) {
    if (t.text == "true" || t.text == "false") return constant(Type::kBool, {t.text == "true"}, t.span);
    if (const auto slot = scope_.find(t.text))
      return add({Op::kSlot, scope_.at(*slot).type, t.span, {*slot}});
    return fail(t.span.begin, t.text,
                fmt::format("'{}' is not a name known here{}{}", t.text, suggestion(t.text, scope_.names()),
                            "; a word is written in quotes"),
                ErrorKind::kUnknownName);
  }

  Operand call(const Token& t) {
    if (t.text == "min") return extremum(t, {t.text, Op::kMin});
    if (t.text == "max") return extremum(t, {t.text, Op::kMax});
    if (t.text == "ceil") return rounding(t, Op::kCeil, Op::kCeilDiv);
    if (t.text == "floor") return rounding(t, Op::kFloor, Op::kFloorDiv);
    return fail(
        t.span.begin, t.text,
        fmt::format("'{}' is not a function{}", t.text, suggestion(t.text, {"min", "max", "ceil", "floor"})),
        ErrorKind::kUnknownName);
  }

  Operand extremum(const Token& t, const Operator& by) {
    Operand left = nested(&Parser::sum);
    needs(left, by.takes, by.sign);
    if (!token().is(",")) fail(t.span.begin, t.text, fmt::format("{} takes two values or more", t.text));
    left.span.begin = t.span.begin;
    while (take_if(",")) left = apply(by, left, nested(&Parser::sum));
    if (!take_if(")")) fail_here("(", "',' or ')' was expected here");
    left.span = since(t.span);
    return left;
  }

  // `quotient`: the same of the quotient of two whole numbers, exact on 64 bits.
  Operand rounding(const Token& t, Op op, Op quotient) {
    const bool outer = std::exchange(rational_, true);
    const Operand inner = nested(&Parser::sum);
    rational_ = outer;
    needs(inner, Type::kReal, t.text);
    if (!take_if(")")) fail_here("(", "')' was expected here");
    const Span span = since(t.span);
    Node& root = tree_.nodes[inner.node];
    if (root.op == Op::kDivide && root.of_left == Type::kInt && root.of_right == Type::kInt) {
      root.op = quotient;
      root.type = Type::kInt;
      root.span = span;
    } else if (inner.type == Type::kReal) {
      return add(op, Type::kInt, span, inner);
    }
    return {inner.node, Type::kInt, span};
  }

  Scope& scope_;
  std::vector<Token> tokens_;
  Expression tree_;
  std::optional<ExpressionError> error_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool rational_ = false;  // inside ceil() or floor()
};

}  // namespace

tl::expected<Expression, ExpressionError> parse(std::string_view text, Scope& scope) {
  SWEEP_GET(auto tokens, lex(text));
  return Parser(text, scope, std::move(tokens)).run();
}

}  // namespace sweep::grid
