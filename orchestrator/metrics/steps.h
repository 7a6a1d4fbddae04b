// Steps: the steps of an attempt, each reduced over its ranks, once. Timed steps leave the warm-up out.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "schema/records.h"

namespace sweep::metrics {

// One step: times are the maximum over the ranks that reported it, tokens and retries their sum, the loss the
// mean over tokens, or over ranks where none says its tokens. Absent communication: some rank could not separate
// it. Absent data: no rank waited for any. Absent loss: no rank told one.
struct WholeStep {
  i64 repeat = 0, step = 0;
  bool warmup = false;
  i64 step_ns = 0, forward_ns = 0, backward_ns = 0, forward_backward_ns = 0, optimizer_ns = 0;
  i64 update_ns = 0;  // the shortest optimizer_ns of a rank: others waited for it in theirs
  std::optional<i64> exposed_comm_ns, data_ns;
  i64 tokens = 0, alloc_retries = 0;
  std::optional<double> loss;
};
// The number of `processes` ranks that must have reported a step so that it counts: all of them; one, if the
// step is a user's program, because in most trainers one rank alone prints its steps.
i64 ranks_needed(const Trial&, i64 processes);
// The steps by repeat and number; warm-up included and marked. Steps that fewer ranks than `needed` reported
// are left out.
std::vector<WholeStep> whole_steps(std::span<const RankRecord>, i64 needed);

// Milliseconds; one value per timed step that enough ranks reported, with a step time above 0 and an update (fp16
// skips some). A part that some step lacks (0 nanoseconds, or no separable communication) has an empty column.
struct Steps {
  std::vector<double> step, forward, backward, forward_backward, optimizer, exposed_comm, data;
};
Steps timed_steps(std::span<const RankRecord>, i64 needed);
// How many ranks reported a timed step.
i64 ranks_with_timed_steps(std::span<const RankRecord>);

}  // namespace sweep::metrics
