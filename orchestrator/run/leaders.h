// Leaders: of a sweep whose trials stop early, the step time that the best result so far allows each other
// trial. Trials are compared as `best` compares them, within one model, hardware and sequence length, by the
// useful tokens that a rank processes in a second.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "orchestrator/run/run_context.h"

namespace sweep::run {

class Leaders {
 public:
  explicit Leaders(const RunContext& context) : context_(context) {}
  // Attempt::stop_above_ms; nullopt: nothing is known to compare with, or the sweep does not stop early.
  Expected<std::optional<double>> bound_for(const Trial&);
  // A result; only `ok` ones that ran to their end count.
  void add(const Trial&, Outcome, const Metrics&);

 private:
  using Question = std::tuple<std::string, std::string, i64>;
  static Question question_of(const Trial& t) { return {t.model, t.hardware, t.seq_len}; }
  Expected<void> read();

  const RunContext& context_;
  bool read_ = false;
  // Useful tokens per second and rank at the slow end of the leader's confidence interval.
  std::map<Question, double> rates_;
};

}  // namespace sweep::run
