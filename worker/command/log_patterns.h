// Numbers from the log of a trainer that reports nothing itself: regular expressions whose first group is a
// number. They give times and losses of steps, never an outcome.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "worker/command/trainer_report.h"

namespace sweep::command {

// What a pattern may read: step (its number), step_ms, step_s (a step's time, in milliseconds or seconds),
// loss, tokens (of a step), reserved_gib (peak of the allocator).
inline constexpr std::array<std::string_view, 6> kLogNumbers{"step", "step_ms", "step_s",
                                                             "loss", "tokens",  "reserved_gib"};

class LogPatterns {
 public:
  // Error: an unknown number, or no regular expression.
  static Expected<LogPatterns> compile(const std::map<std::string, std::string>&);
  LogPatterns(LogPatterns&&) noexcept;
  LogPatterns& operator=(LogPatterns&&) noexcept;
  ~LogPatterns();

  // A line with a step's time is a step; without a number of its own it follows the last one. Lines longer
  // than kLongestLogLine are passed over.
  struct Found {
    std::vector<TrainerStep> steps;
    std::optional<i64> peak_reserved_bytes;
  };
  Found read(std::string_view log) const;

 private:
  struct Compiled;
  explicit LogPatterns(std::unique_ptr<Compiled>);
  std::unique_ptr<Compiled> compiled_;
};
inline constexpr std::size_t kLongestLogLine = 8u << 10;

}  // namespace sweep::command
