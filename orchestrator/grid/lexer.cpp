#include "orchestrator/grid/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace sweep::grid {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

constexpr std::string_view kSigns[] = {"==", "!=", "<=", ">=", "//", "<", ">", "+", "-",
                                       "*",  "/",  "%",  "(",  ")",  "[", "]", ","};
constexpr std::string_view kWordSigns[] = {"and", "or", "not", "in"};

// Ways other languages spell it, and ours.
struct Foreign {
  std::string_view sign, way_out;
};
constexpr Foreign kForeign[] = {{"&&", "write 'and'"},     {"||", "write 'or'"}, {"**", "multiply instead"},
                                {"^", "multiply instead"}, {"&", "write 'and'"}, {"|", "write 'or'"},
                                {"!", "write 'not'"}};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  tl::expected<std::vector<Token>, ExpressionError> run() {
    std::vector<Token> tokens;
    do {
      while (here(" \t\n")) ++at_;
      Token& token = tokens.emplace_back();
      token.span.begin = static_cast<std::uint32_t>(at_);
      if (at_ < text_.size() && !next(token)) return tl::unexpected(error_);
      token.span.end = static_cast<std::uint32_t>(at_);
    } while (tokens.back().kind != Token::Kind::kEnd);
    return tokens;
  }

 private:
  bool here(std::string_view any_of) const {
    return at_ < text_.size() && any_of.find(text_[at_]) != std::string_view::npos;
  }
  bool refuse(std::string_view subject, std::string message) {
    error_ = {at_, std::move(message), ErrorKind::kInvalidValue, std::string(subject)};
    return false;
  }

  bool next(Token& token) {
    const char c = text_[at_];
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number(token);
    if (is_letter(c)) return name(token);
    return here("\"'") ? word(token) : sign(token);
  }

  bool number(Token& token) {
    std::size_t end = at_;
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      const bool exponent_sign = (c == '+' || c == '-') && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (!is_digit(c) && !is_letter(c) && c != '.' && !exponent_sign) break;
    }
    const std::string_view digits = text_.substr(at_, end - at_);
    const char* const last = digits.data() + digits.size();
    token.kind = std::ranges::all_of(digits, is_digit) ? Token::Kind::kInt : Token::Kind::kReal;
    const auto got = token.kind == Token::Kind::kInt ? std::from_chars(digits.data(), last, token.number.i)
                                                     : std::from_chars(digits.data(), last, token.number.r);
    if (got.ec == std::errc::result_out_of_range)
      return refuse(digits, fmt::format("the number {} is too large", digits));
    if (got.ec != std::errc{} || got.ptr != last)
      return refuse(digits, fmt::format("'{}' is not a number; write it as 12 or 1.5", digits));
    at_ = end;
    return true;
  }

  bool name(Token& token) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    token.text = std::string(text_.substr(begin, at_ - begin));
    const bool is_sign = std::ranges::find(kWordSigns, token.text) != std::end(kWordSigns);
    token.kind = is_sign ? Token::Kind::kSign : Token::Kind::kName;
    return true;
  }

  bool word(Token& token) {
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos)
      return refuse("", fmt::format("the quote {} is not closed", text_[at_]));
    token.text = std::string(text_.substr(at_ + 1, end - at_ - 1));
    token.kind = Token::Kind::kText;
    at_ = end + 1;
    return true;
  }

  bool sign(Token& token) {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("=") && !rest.starts_with("=="))
      return refuse("=", "'=' sets nothing here; write '==' to compare");
    for (const Foreign& each : kForeign) {
      if (rest.starts_with(each.sign) && !rest.starts_with("!="))
        return refuse(each.sign, fmt::format("'{}' is not known here; {}", each.sign, each.way_out));
    }
    const auto found = std::ranges::find_if(kSigns, [&](auto each) { return rest.starts_with(each); });
    if (found == std::end(kSigns)) {
      const bool ascii = static_cast<unsigned char>(rest[0]) < 0x80;
      return refuse("", fmt::format("'{}' means nothing in an expression",
                                    ascii ? rest.substr(0, 1) : "a character outside ASCII"));
    }
    token.kind = Token::Kind::kSign;
    token.text = std::string(*found);
    at_ += found->size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
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
