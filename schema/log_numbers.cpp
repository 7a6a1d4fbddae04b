#include "schema/log_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/regex.hpp>

namespace sweep {

std::string why_no_log_pattern(std::string_view name, const std::string& text) {
  if (std::ranges::find(kLogNumbers, name) == kLogNumbers.end())
    return fmt::format("log_patterns: '{}' is none of {}", name, fmt::join(kLogNumbers, ", "));
  try {
    if (boost::regex(text).mark_count() < 1)
      return fmt::format("log_patterns: {}: '{}' has no group (...) around the number", name, text);
  } catch (const boost::regex_error& error) {
    return fmt::format("log_patterns: {}: '{}' is no regular expression: {}", name, text, error.what());
  }
  return "";
}

}  // namespace sweep
