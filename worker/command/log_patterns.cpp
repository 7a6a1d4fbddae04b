#include "worker/command/log_patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/regex.hpp>
#include <charconv>
#include <cmath>

namespace sweep::command {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

// "1,234.5" and "1234.5"; none: no finite number.
std::optional<double> number_from(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

struct LogPatterns::Compiled {
  std::map<std::string, boost::regex, std::less<>> of;

  // Boost gives up on a line whose search explodes; such a line holds no number.
  std::optional<double> find(std::string_view name, std::string_view line) const {
    const auto pattern = of.find(name);
    if (pattern == of.end()) return std::nullopt;
    try {
      boost::match_results<std::string_view::const_iterator> match;
      if (!boost::regex_search(line.begin(), line.end(), match, pattern->second)) return std::nullopt;
      return number_from(match[1].str());
    } catch (const std::runtime_error&) {
      return std::nullopt;
    }
  }

  std::optional<double> milliseconds(std::string_view line) const {
    if (const auto ms = find("step_ms", line)) return ms;
    const auto seconds = find("step_s", line);
    return seconds ? std::optional(*seconds * 1e3) : std::nullopt;
  }
};

LogPatterns::LogPatterns(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
LogPatterns::LogPatterns(LogPatterns&&) noexcept = default;
LogPatterns& LogPatterns::operator=(LogPatterns&&) noexcept = default;
LogPatterns::~LogPatterns() = default;

Expected<LogPatterns> LogPatterns::compile(const std::map<std::string, std::string>& wanted) {
  auto compiled = std::make_unique<Compiled>();
  for (const auto& [name, text] : wanted) {
    if (std::ranges::find(kLogNumbers, name) == kLogNumbers.end())
      return fail(fmt::format("log_patterns: '{}' is none of {}", name, fmt::join(kLogNumbers, ", ")));
    try {
      compiled->of.emplace(name, boost::regex(text));
    } catch (const boost::regex_error& error) {
      return fail(
          fmt::format("log_patterns: {}: '{}' is no regular expression: {}", name, text, error.what()));
    }
    if (compiled->of.at(name).mark_count() < 1)
      return fail(fmt::format("log_patterns: {}: '{}' has no group around the number", name, text));
  }
  return LogPatterns(std::move(compiled));
}

LogPatterns::Found LogPatterns::read(std::string_view log) const {
  Found out;
  i64 last = 0;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (line.size() > kLongestLogLine) continue;
    if (const auto gib = compiled_->find("reserved_gib", line); gib && *gib >= 0 && *gib < 1e6)
      out.peak_reserved_bytes =
          std::max(out.peak_reserved_bytes.value_or(0), static_cast<i64>(std::llround(*gib * kGib)));
    const auto ms = compiled_->milliseconds(line);
    if (!ms || *ms < 0) continue;
    TrainerStep step;
    const auto number = compiled_->find("step", line);
    step.number = number && *number >= 1 && *number <= static_cast<double>(kMostSteps)
                      ? static_cast<i64>(*number)
                      : last + 1;
    if (step.number <= last || step.number > kMostSteps) continue;
    last = step.number;
    step.ms = ms;
    step.loss = compiled_->find("loss", line);
    if (const auto tokens = compiled_->find("tokens", line); tokens && *tokens >= 0 && *tokens < 1e15)
      step.tokens = static_cast<i64>(*tokens);
    out.steps.push_back(step);
  }
  return out;
}

}  // namespace sweep::command
