// LogPatterns: numbers from the log of a trainer that reports nothing itself, read as the log grows: regular
// expressions whose first group is a number (schema/log_numbers.h). They give times and losses of steps, never an
// outcome.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "worker/command/line_cutter.h"
#include "worker/command/trainer_report.h"

namespace sweep::command {

inline constexpr std::size_t kLongestLogLine = 8u << 10;

class LogPatterns {
 public:
  // Error: an unknown number, or no regular expression.
  static Expected<LogPatterns> compile(const std::map<std::string, std::string>&);
  LogPatterns(LogPatterns&&) noexcept;
  LogPatterns& operator=(LogPatterns&&) noexcept;
  ~LogPatterns();

  // The next bytes of the log, cut anywhere. Lines end at '\n' or '\r'. A line with a step's time is a step; where no
  // pattern finds numbers of steps it follows the last one, else it must have one. Lines longer than kLongestLogLine, and those with NUL bytes (a
  // hole was read), are passed over.
  void feed(std::string_view bytes);
  // Some bytes of the log are missing here.
  void gap() { cutter_.drop(); }
  // The log has ended; its last line may have no end.
  void finish();

  // The steps that were found since the last call.
  std::vector<TrainerStep> take_steps();
  // One number of the whole run, as the log said it last: the mean time of a step, with tokens and loss of its line.
  const std::optional<TrainerStep>& summary() const { return summary_; }
  const std::optional<i64>& peak_reserved_bytes() const { return peak_reserved_bytes_; }
  i64 lines() const { return lines_; }
  // Pattern -> lines in which it found a number.
  std::map<std::string, i64> matches() const;

 private:
  struct Compiled;
  explicit LogPatterns(std::unique_ptr<Compiled>);
  void line(std::string_view text);
  void add_step(double ms, std::string_view text);
  void add_details(TrainerStep&, std::string_view text);

  std::unique_ptr<Compiled> compiled_;
  LineCutter cutter_;
  std::vector<TrainerStep> steps_;
  i64 last_ = 0, lines_ = 0;
  bool first_is_zero_ = false;  // the trainer counts steps from 0
  std::optional<TrainerStep> summary_;
  std::optional<i64> peak_reserved_bytes_;
};

}  // namespace sweep::command
