// Attempt: one try at running a trial, as it travels in an inbox line. It carries all that agent and ranks
// need.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "schema/outcome.h"
#include "schema/trial.h"

namespace sweep {

struct MeasurePlan {
  i64 warmup_steps = 3;
  i64 steps = 10;
  i64 repeats = 1;
  // A trial ends before its last step once it is clearly slower than the best so far.
  bool early_stop = false;
  // The steps of an attempt that runs to its end.
  double all_steps() const {
    return static_cast<double>(warmup_steps + steps) * static_cast<double>(repeats);
  }
  bool operator==(const MeasurePlan&) const = default;
};

// Seconds without progress after which the agent calls a phase hung; `total` bounds the whole attempt
// (timeout).
struct Deadlines {
  double startup_s = 120;
  double first_step_s = 120;
  double step_s = 60;
  double total_s = 3600;
  double grace_s = 3;     // between SIGTERM and SIGKILL
  double around_s = 120;  // seconds for what surrounds the steps: loading, an evaluation, a checkpoint
  bool operator==(const Deadlines&) const = default;
};

struct Attempt {
  i64 id = 0;  // attempt id of the database
  std::string trial_id;
  Trial trial;
  MeasurePlan measure;
  Deadlines deadlines;
  i64 log_limit_bytes = 16 << 20;  // per rank
  RankStart start = RankStart::kZygote;
  // The site's price of a node; nullopt: the catalogue's price holds.
  std::optional<double> usd_per_node_hour{};
  // The folder where checkpoints are written; empty: the folder for temporary files of each node.
  std::string checkpoint_folder{};
  // Seconds the whole attempt is expected to take, at the pace so far.
  std::optional<double> predicted_s{};
  // The step time that the best trial so far allows, with early_stop. A trial ends once the confidence interval
  // of its median step time lies above it. nullopt: it runs to its last step.
  std::optional<double> stop_above_ms{};
  // The ranks that a rehearsal on phantom GPUs starts, ascending, all of them on one node. Empty: a real run,
  // which starts every rank.
  std::vector<i64> rehearsed_ranks{};
  bool operator==(const Attempt&) const = default;

  // True for the workload `command`: its ranks run trial.program (command_from()) instead of the built-in
  // step.
  bool runs_command() const { return trial.workload != Workload::kCalibrate && !trial.program.empty(); }
  bool is_rehearsal() const { return !rehearsed_ranks.empty(); }
  i64 nodes_needed() const { return is_rehearsal() ? 1 : std::max<i64>(trial.nodes, 1); }
  // Ranks that are started, on all nodes together.
  i64 processes() const { return is_rehearsal() ? static_cast<i64>(rehearsed_ranks.size()) : trial.world(); }
  // False where a rehearsal starts some ranks, and takes the others for mirrors of them.
  bool starts_every_rank() const { return processes() == trial.world(); }
  // The rank that the index-th process is. REQUIRES: 0 <= index < processes().
  i64 rank_of(i64 index) const {
    return is_rehearsal() ? rehearsed_ranks[static_cast<std::size_t>(index)] : index;
  }
  bool starts(i64 rank) const {
    if (!is_rehearsal()) return rank >= 0 && rank < trial.world();
    return std::binary_search(rehearsed_ranks.begin(), rehearsed_ranks.end(), rank);
  }
};

}  // namespace sweep
