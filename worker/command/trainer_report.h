// TrainerReport: what a trainer says about itself, line by line (docs/trainers.md). Each line is a JSON
// object; what it does not say stays absent. Nothing in it is trusted: a line that is no such object, too
// long, of wrong types or out of order is counted as damaged and skipped.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/records.h"
#include "worker/command/line_cutter.h"

namespace sweep::command {

inline constexpr std::size_t kLongestLine = 64u << 10;
inline constexpr i64 kMostSteps = 200'000;  // further ones are counted, not kept

struct TrainerError {
  Outcome outcome = Outcome::kCrash;  // crash, oom, unsupported
  std::optional<OomKind> oom_kind;
  std::optional<i64> asked_bytes;
  std::string part;     // part of an oom: build, forward, backward, optimizer, communication
  std::string message;  // "type: text"
  bool consequential = false;
  // When it happened, by the trainer's clock; nullopt: it did not say.
  std::optional<i64> unix_ns;
  bool after_end = false;  // it came after the end of the run
};

struct TrainerStep {
  i64 number = 0;  // number from 1, warm-up included
  // nullopt: the trainer does not know when the step began.
  std::optional<double> ms;
  std::optional<double> forward_ms, backward_ms, optimizer_ms, loss;
  std::optional<i64> tokens, alloc_retries;
};

class TrainerReport {
 public:
  // The next bytes of the file, cut anywhere.
  void feed(std::string_view bytes);
  // A step that its log told. Steps that the trainer reports itself replace these.
  void add_logged(TrainerStep);
  // Sets what its log says of the whole run; it is used if the trainer does not say it itself.
  void set_logged_run(std::optional<TrainerStep> mean_step, std::optional<i64> peak_reserved_bytes);

  bool has_begun() const { return begun_; }
  const std::vector<TrainerStep>& steps() const { return steps_; }
  i64 last_step() const { return last_step_; }
  // The steps, or else the mean of all of them, are those of its log.
  bool is_from_log() const { return log_.steps || (last_step_ == 0 && log_.mean_step); }
  const std::optional<TrainerStep>& mean_step() const { return log_.mean_step; }
  // The last phase it named.
  Phase phase() const { return phase_; }
  const std::optional<TrainerError>& error() const { return error_; }
  // It said that it came to its end.
  bool has_ended() const { return ended_; }
  // The last report of its caching allocator.
  struct Memory {
    std::optional<i64> peak_allocated_bytes, peak_reserved_bytes, alloc_retries, ooms;
  };
  Memory memory() const;
  // The trainer's statements about its process; they are untrusted like the rest.
  struct Identity {
    std::optional<i64> pid, world;
    i64 other_steps = 0;  // steps of optimizers that it does not follow
  };
  const Identity& identity() const { return identity_; }
  i64 lines() const { return lines_; }
  i64 damaged() const { return damaged_; }

 private:
  void line(std::string_view text);
  class Members;
  bool understand(std::string_view text);
  bool understand_step(Members&);
  static std::optional<TrainerError> error_from(Members&);
  bool add_step(TrainerStep step);

  LineCutter cutter_{kLongestLine, false};
  bool begun_ = false, ended_ = false;
  i64 lines_ = 0, damaged_ = 0, last_step_ = 0;
  Phase phase_ = Phase::kInit;
  std::vector<TrainerStep> steps_;
  std::optional<TrainerError> error_;
  Memory memory_;
  Identity identity_;
  struct {
    bool steps = false;
    std::optional<TrainerStep> mean_step;
    std::optional<i64> peak_reserved_bytes;
  } log_;
};

}  // namespace sweep::command
