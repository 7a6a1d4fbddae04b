#include "orchestrator/grid/lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace sweep::grid {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

constexpr std::array<std::string_view, 18> kSigns{"==", "!=", "<=", ">=", "//", "<", ">", "+", "-",
                                                  "*",  "/",  "%",  "(",  ")",  "[", "]", ",", "**"};
constexpr std::array<std::string_view, 4> kWordSigns{"and", "or", "not", "in"};

// Ways other languages spell it, and ours.
struct Foreign {
  std::string_view sign, way_out;
};
constexpr std::array<Foreign, 7> kForeign{{{"&&", "write 'and'"},
                                           {"||", "write 'or'"},
                                           {"**", "multiply instead"},
                                           {"^", "multiply instead"},
                                           {"&", "write 'and'"},
                                           {"|", "write 'or'"},
                                           {"!", "write 'not'"}}};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  tl::expected<std::vector<Token>, ExpressionError> run() {
    for (;;) {
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
      Token token;
      token.span.begin = static_cast<std::uint32_t>(at_);
      if (at_ < text_.size() && !next(token)) return tl::unexpected(error_);
      token.span.end = static_cast<std::uint32_t>(at_);
      tokens_.push_back(token);
      if (token.kind == Token::Kind::kEnd) return std::move(tokens_);
    }
  }

 private:
  bool refuse(std::size_t at, Fault fault, std::string message) {
    error_ = {at, std::move(message), fault.kind, std::string(fault.subject)};
    return false;
  }

  bool next(Token& token) {
    const char c = text_[at_];
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number(token);
    if (is_letter(c)) return name(token);
    if (c == '"' || c == '\'') return word(token, c);
    return sign(token);
  }

  bool number(Token& token) {
    const std::size_t begin = at_;
    bool real = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool exponent_sign = (c == '+' || c == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!is_digit(c) && !is_letter(c) && c != '.' && !exponent_sign) break;
      real = real || !is_digit(c);
      ++at_;
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    const char* end = digits.data() + digits.size();
    std::from_chars_result got{};
    if (real) {
      got = std::from_chars(digits.data(), end, token.number.r);
    } else {
      got = std::from_chars(digits.data(), end, token.number.i);
    }
    if (got.ec == std::errc::result_out_of_range ||
        (real && got.ec == std::errc{} && !std::isfinite(token.number.r))) {
      return refuse(begin, {ErrorKind::kInvalidValue, digits},
                    fmt::format("the number {} is too large", digits));
    }
    if (got.ec != std::errc{} || got.ptr != end) {
      return refuse(begin, {ErrorKind::kInvalidValue, digits},
                    fmt::format("'{}' is not a number; write it as 12 or 1.5", digits));
    }
    token.kind = real ? Token::Kind::kReal : Token::Kind::kInt;
    return true;
  }

  bool name(Token& token) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    token.text = std::string(text_.substr(begin, at_ - begin));
    token.kind = Token::Kind::kName;
    for (const auto sign : kWordSigns) {
      if (token.text == sign) token.kind = Token::Kind::kSign;
    }
    return true;
  }

  bool word(Token& token, char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos)
      return refuse(at_, {ErrorKind::kInvalidValue, ""}, fmt::format("the quote {} is not closed", quote));
    token.text = std::string(text_.substr(at_ + 1, end - at_ - 1));
    token.kind = Token::Kind::kText;
    at_ = end + 1;
    return true;
  }

  bool sign(Token& token) {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("=") && !rest.starts_with("==")) {
      return refuse(at_, {ErrorKind::kInvalidValue, "="}, "'=' sets nothing here; write '==' to compare");
    }
    for (const auto& foreign : kForeign) {
      if (rest.starts_with(foreign.sign) && !rest.starts_with("!=")) {
        return refuse(at_, {ErrorKind::kInvalidValue, foreign.sign},
                      fmt::format("'{}' is not known here; {}", foreign.sign, foreign.way_out));
      }
    }
    for (const auto sign : kSigns) {
      if (!rest.starts_with(sign)) continue;
      token.kind = Token::Kind::kSign;
      token.text = std::string(sign);
      at_ += sign.size();
      return true;
    }
    return refuse(
        at_, {ErrorKind::kInvalidValue, ""},
        fmt::format("'{}' means nothing in an expression", static_cast<unsigned char>(rest[0]) < 0x80
                                                               ? std::string(rest.substr(0, 1))
                                                               : std::string("a character outside ASCII")));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
  ExpressionError error_;
};

}  // namespace

tl::expected<std::vector<Token>, ExpressionError> lex(std::string_view text) {
  if (text.size() > kMaxExpressionBytes) {
    return tl::unexpected(ExpressionError{
        0, fmt::format("the expression has {} bytes; at most {}, split it", text.size(), kMaxExpressionBytes),
        ErrorKind::kInvalidValue});
  }
  return Lexer(text).run();
}

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> out;
  const auto tokens = lex(text);
  if (!tokens) return out;
  for (const Token& token : *tokens) {
    if (token.kind == Token::Kind::kName) out.push_back(token.text);
  }
  return out;
}

}  // namespace sweep::grid
