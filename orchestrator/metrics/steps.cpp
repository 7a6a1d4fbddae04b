#include "orchestrator/metrics/steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sweep::metrics {
namespace {

// The maximum over ranks of one step, in nanoseconds.
struct Slowest {
  std::set<i64> ranks;
  i64 step = 0, forward = 0, backward = 0, forward_backward = 0, optimizer = 0, exposed_comm = 0;
  bool comm_everywhere = true;

  void add(i64 rank, const StepSample& s) {
    ranks.insert(rank);
    step = std::max(step, s.step_ns);
    forward = std::max(forward, s.forward_ns);
    backward = std::max(backward, s.backward_ns);
    if (s.forward_ns > 0 && s.backward_ns > 0)
      forward_backward = std::max(forward_backward, s.forward_ns + s.backward_ns);
    optimizer = std::max(optimizer, s.optimizer_ns);
    exposed_comm = std::max(exposed_comm, s.exposed_comm_ns.value_or(0));
    comm_everywhere = comm_everywhere && s.exposed_comm_ns && *s.exposed_comm_ns >= 0;
  }
};

// Appends a measured part, or marks the column incomplete.
void append(std::vector<double>& column, bool& complete, i64 ns, bool measured) {
  complete = complete && measured;
  column.push_back(static_cast<double>(ns) / 1e6);
  if (!complete) column.clear();
}

}  // namespace

Steps timed_steps(std::span<const RankRecord> records, i64 world) {
  std::map<std::pair<i64, i64>, Slowest> by_step;  // (repeat, step)
  for (const RankRecord& r : records)
    for (const StepSample& s : r.samples)
      if (!s.warmup) by_step[{s.repeat, s.step}].add(r.rank, s);
  Steps out;
  bool step = true, forward = true, backward = true, both = true, optimizer = true, comm = true;
  for (const auto& [key, s] : by_step) {
    if (static_cast<i64>(s.ranks.size()) != world || s.step <= 0) continue;
    append(out.step, step, s.step, true);
    append(out.forward, forward, s.forward, s.forward > 0);
    append(out.backward, backward, s.backward, s.backward > 0);
    append(out.forward_backward, both, s.forward_backward, s.forward_backward > 0);
    append(out.optimizer, optimizer, s.optimizer, s.optimizer > 0);
    append(out.exposed_comm, comm, s.exposed_comm, s.comm_everywhere);
  }
  return out;
}

}  // namespace sweep::metrics
