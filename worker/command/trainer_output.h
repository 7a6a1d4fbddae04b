// TrainerOutput: what the trainer of one rank says, read as it comes: its results file, and the log of its program,
// whose numbers `log_patterns` describe. It keeps no bytes: the agent bounds the log, and room in the results file is
// given back once it was read.
#pragma once
#include <filesystem>
#include <optional>

#include "base/expected.h"
#include "schema/command_spec.h"
#include "worker/command/log_patterns.h"
#include "worker/command/trainer_report.h"

namespace sweep::command {

// A file that grows while it is read.
struct GrowingFile {
  std::filesystem::path path;
  std::uint64_t read = 0;     // bytes that were read or passed over
  std::uint64_t freed = 0;    // bytes whose room on the disk was given back
  std::uint64_t missing = 0;  // bytes that the agent cut out of a long log before they were read
};

class TrainerOutput {
 public:
  // log: of the program. finds_steps: this rank's process writes it, so the numbers in it are this rank's; else only
  // its growth counts.
  static Expected<TrainerOutput> open(std::filesystem::path results, std::filesystem::path log,
                                      const CommandSpec&, bool finds_steps);

  // Reads what is new, for a quarter of a second at most. False: there is more.
  bool look();
  // The program has ended: a last line may have no end.
  void finish();
  // Since the last call.
  bool log_has_grown();

  const TrainerReport& report() const { return report_; }
  // Adds where the steps came from and what the log holds.
  void describe(EffectiveSettings& effective) const;

 private:
  TrainerOutput() = default;
  bool read_log(double until_s);
  void tell_report();

  GrowingFile results_, log_;
  TrainerReport report_;
  std::optional<LogPatterns> patterns_;
  std::uint64_t log_bytes_seen_ = 0;
};

}  // namespace sweep::command
