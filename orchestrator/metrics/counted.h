// CountedStep: the counters of phantom GPUs for a rank's last step (docs/phantom.md). A real GPU has none of
// them.
#pragma once
#include <optional>

#include "schema/records.h"

namespace sweep::metrics {

struct CountedStep {
  i64 launches = 0, host_syncs = 0;
  i64 host_work_ns = 0;             // modelled: what its calls cost the host
  i64 device_ns = 0, busy_ns = 0;   // modelled: how long it took, and how long of that the GPU had work
  std::optional<i64> pinned_bytes;  // the most host memory that was pinned at once in the whole run
};

// Share of the modelled kernel time that no measured kernel stands behind; of a command: over the whole run.
// nullopt: the rank ran on no phantom GPU, or launched nothing.
std::optional<double> guessed_share(const RankRecord&);
// nullopt: the rank ran on no phantom GPU, finished no step, or its counters cannot be read.
std::optional<CountedStep> counted_step(const RankRecord&);

}  // namespace sweep::metrics
