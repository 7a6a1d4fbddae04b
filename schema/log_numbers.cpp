#include "schema/log_numbers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/regex.hpp>

#include "base/fail.h"

namespace sweep {

struct LogPattern::Compiled {
  boost::regex expression;
};

Expected<LogPattern> LogPattern::compile(std::string_view number, const std::string& text) {
  if (std::ranges::find(kLogNumbers, number) == kLogNumbers.end())
    return fail("log_patterns: '{}' is none of {}", number, fmt::join(kLogNumbers, ", "));
  try {
    LogPattern out;
    out.compiled_ = std::make_shared<const Compiled>(Compiled{boost::regex(text)});
    if (out.compiled_->expression.mark_count() < 1)
      return fail("log_patterns: {}: '{}' has no group (...) around the number", number, text);
    return out;
  } catch (const boost::regex_error& error) {
    return fail("log_patterns: {}: '{}' is no regular expression: {}", number, text, error.what());
  }
}

std::optional<std::string> LogPattern::find(std::string_view line) const {
  try {
    boost::cmatch match;
    if (!boost::regex_search(line.data(), line.data() + line.size(), match, compiled_->expression))
      return std::nullopt;
    return match[1].str();
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

}  // namespace sweep
