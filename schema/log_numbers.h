// The numbers that log_patterns may read from the log of a program that reports nothing itself.
#pragma once
#include <array>
#include <string>
#include <string_view>

namespace sweep {

// The line of a step may hold: step (its number), step_ms, step_s (its time, in milliseconds or seconds),
// steps_per_s (its inverse), loss, tokens. These are of the whole run: mean_step_ms, mean_step_s,
// mean_steps_per_s (its mean step) and reserved_gib (peak of the allocator).
inline constexpr std::array<std::string_view, 10> kLogNumbers{
    "step",   "step_ms",      "step_s",      "steps_per_s",      "loss",
    "tokens", "mean_step_ms", "mean_step_s", "mean_steps_per_s", "reserved_gib"};

// Why `text` cannot be the pattern of the number `name`; empty: it can. A pattern is a regular expression (Perl's
// syntax, as Boost reads it) whose first group is the number.
std::string why_no_log_pattern(std::string_view name, const std::string& text);

}  // namespace sweep
