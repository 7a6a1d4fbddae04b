// Progress: how far a sweep is, in counts and by what its database says of the run: what it holds, saved and went
// through. tables/status.h shows it as text.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/tables/status.h"
#include "orchestrator/store/store.h"

namespace sweep::answers {

struct Progress {
  store::SweepRow sweep;
  store::Progress counts;
  std::optional<ResultRow> best;
  std::optional<double> elapsed_s, left_s;  // nullopt: not known
  std::string best_by = {};                 // the metric that the best is the best by
};

// An allocation that has not ended.
struct HeldAllocation {
  store::AllocationRow row;
  std::vector<std::string> hosts;
  i64 results = 0;  // so far
  std::vector<store::AttemptRow> running{};
};
struct GpuHours {
  double held = 0;  // held by all runs of the sweep
  std::optional<double> limit;
};
// The parts of `status` beyond counts.
struct RunDetails {
  std::vector<HeldAllocation> held;
  GpuHours gpu_hours;
  store::Shortcuts shortcuts;
  std::vector<store::ExcludedHost> excluded;
  std::vector<SweepEvent> events;  // the last ones, oldest first
};
Expected<RunDetails> run_details(store::Store&, i64 sweep, const GpuHours&, i64 events);

// The axes that vary among the plan's trials: they name the best configuration in the views below.
Expected<std::vector<Field>> varying_axes(store::Store&, i64 sweep);

StatusView status_view(const Progress&, std::span<const Field> shown);
// `run_by`: a sentence on who runs it; empty: nobody does.
void add_holder(StatusView&, const std::string& run_by);
void add_details(StatusView&, const RunDetails&, std::span<const Field> shown);
// "0.5 of 2 GPU-hours (on a CPU: slot-hours), all runs together"; empty: nothing was held yet.
std::string gpu_hours_text(const GpuHours&);
// `sweep status --json` (docs/json.md). `run_by`: who has the lease.
nlohmann::json progress_json(const Progress&, const RunDetails&,
                             const std::optional<store::LeaseHolder>& run_by);

}  // namespace sweep::answers
