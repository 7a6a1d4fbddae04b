// The numbers that log_patterns may read from the log of a program that reports nothing itself.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace sweep {

// The line of a step may hold: step (its number), step_ms, step_s (its time, in milliseconds or seconds),
// steps_per_s (its inverse), loss, tokens. These are of the whole run: mean_step_ms, mean_step_s,
// mean_steps_per_s (its mean step) and reserved_gib (peak of the allocator).
inline constexpr std::array<std::string_view, 10> kLogNumbers{
    "step",   "step_ms",      "step_s",      "steps_per_s",      "loss",
    "tokens", "mean_step_ms", "mean_step_s", "mean_steps_per_s", "reserved_gib"};

// The pattern of one of these numbers: a regular expression (Perl's syntax, as Boost reads it) whose first group is the
// number.
class LogPattern {
 public:
  // Error: `number` is none of kLogNumbers, `text` is no regular expression, or it has no group.
  static Expected<LogPattern> compile(std::string_view number, const std::string& text);
  // Returns the text of the group in the first match of the line. Boost gives up on a line whose search explodes; such a
  // line holds no number.
  std::optional<std::string> find(std::string_view line) const;

 private:
  LogPattern() = default;
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace sweep
