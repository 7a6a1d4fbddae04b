#include "worker/command/log_patterns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number_in.h"
#include "schema/log_numbers.h"

namespace sweep::command {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kLongestStepMs = 1e12;

// Commas as they separate thousands: groups of three digits, after one to three of which the first is no zero.
bool separates_thousands(std::string_view text) {
  const std::string_view whole = text.substr(0, text.find_first_not_of("+-0123456789,"));
  const auto digits = whole.find_first_not_of("+-");
  auto comma = whole.find(',');
  if (digits == std::string_view::npos || whole[digits] == '0' || comma == digits || comma - digits > 3)
    return false;
  for (; comma != std::string_view::npos; comma = whole.find(',', comma + 1))
    if (std::min(whole.find(',', comma + 1), whole.size()) != comma + 4) return false;
  return text.find(',', whole.size()) == std::string_view::npos;
}

// "1,234.5" and "1234.5"; none: no finite number, or a comma of another meaning, such as 0,125.
std::optional<double> number_from(std::string text) {
  if (text.find(',') != std::string::npos && !separates_thousands(text)) return std::nullopt;
  std::erase(text, ',');
  const auto value = number_in<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

struct LogPatterns::Compiled {
  struct Pattern {
    LogPattern expression;
    i64 found = 0;
  };
  std::map<std::string, Pattern, std::less<>> of;

  std::optional<double> find(std::string_view name, std::string_view line) {
    const auto pattern = of.find(name);
    if (pattern == of.end()) return std::nullopt;
    const auto text = pattern->second.expression.find(line);
    if (!text) return std::nullopt;
    const auto number = number_from(*text);
    if (number) ++pattern->second.found;
    return number;
  }

  // A time of a step in milliseconds: as milliseconds, seconds, or steps per second.
  std::optional<double> milliseconds(std::string_view line, const char* ms, const char* s, const char* rate) {
    auto found = find(ms, line);
    if (!found)
      if (const auto seconds = find(s, line)) found = *seconds * 1e3;
    if (!found)
      if (const auto per_s = find(rate, line); per_s && *per_s > 0) found = 1e3 / *per_s;
    return found && *found >= 0 && *found <= kLongestStepMs ? found : std::nullopt;
  }
};

LogPatterns::LogPatterns(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)), cutter_(kLongestLogLine, true) {}
LogPatterns::LogPatterns(LogPatterns&&) noexcept = default;
LogPatterns& LogPatterns::operator=(LogPatterns&&) noexcept = default;
LogPatterns::~LogPatterns() = default;

Expected<LogPatterns> LogPatterns::compile(const std::map<std::string, std::string>& wanted) {
  auto compiled = std::make_unique<Compiled>();
  for (const auto& [name, text] : wanted) {
    SWEEP_GET(auto pattern, LogPattern::compile(name, text));
    compiled->of.emplace(name, Compiled::Pattern{std::move(pattern)});
  }
  return LogPatterns(std::move(compiled));
}

void LogPatterns::feed(std::string_view bytes) {
  cutter_.feed(bytes, [this](std::optional<std::string_view> text) { line(text.value_or("")); });
}

void LogPatterns::finish() {
  cutter_.finish([this](std::optional<std::string_view> text) { line(text.value_or("")); });
}

void LogPatterns::line(std::string_view text) {
  ++lines_;
  if (text.empty() || text.find('\0') != std::string_view::npos) return;
  if (const auto gib = compiled_->find("reserved_gib", text); gib && *gib >= 0 && *gib < 1e6)
    peak_reserved_bytes_ =
        std::max(peak_reserved_bytes_.value_or(0), static_cast<i64>(std::llround(*gib * kGib)));
  if (const auto ms = compiled_->milliseconds(text, "step_ms", "step_s", "steps_per_s")) add_step(*ms, text);
  const auto mean = compiled_->milliseconds(text, "mean_step_ms", "mean_step_s", "mean_steps_per_s");
  if (!mean) return;
  summary_.emplace();
  summary_->ms = mean;
  add_details(*summary_, text);
}

void LogPatterns::add_details(TrainerStep& step, std::string_view text) {
  step.loss = compiled_->find("loss", text);
  if (const auto tokens = compiled_->find("tokens", text); tokens && *tokens >= 0 && *tokens < 1e15)
    step.tokens = static_cast<i64>(*tokens);
}

void LogPatterns::add_step(double ms, std::string_view text) {
  TrainerStep step;
  step.number = last_ + 1;
  if (compiled_->of.contains("step")) {
    const auto number = compiled_->find("step", text);
    if (!number || *number < 0 || *number > static_cast<double>(kMostSteps)) return;
    if (*number == 0 && last_ == 0) first_is_zero_ = true;
    step.number = static_cast<i64>(*number) + (first_is_zero_ ? 1 : 0);
  }
  if (step.number <= last_ || step.number > kMostSteps) return;
  last_ = step.number;
  step.ms = ms;
  add_details(step, text);
  steps_.push_back(step);
}

std::vector<TrainerStep> LogPatterns::take_steps() {
  return std::exchange(steps_, {});
}

std::map<std::string, i64> LogPatterns::matches() const {
  std::map<std::string, i64> out;
  for (const auto& [name, pattern] : compiled_->of) out.emplace(name, pattern.found);
  return out;
}

}  // namespace sweep::command
