#include "orchestrator/metrics/steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sweep::metrics {
namespace {

struct Mean {
  double sum = 0, weight = 0;
  void add(double value, double by) { sum += value * by, weight += by; }
  std::optional<double> value() const { return weight > 0 ? std::optional(sum / weight) : std::nullopt; }
};

// A step as far as its ranks have been added.
struct Gathering {
  std::set<i64> ranks;
  bool comm_everywhere = true;
  Mean loss_by_tokens, loss_by_ranks;
  WholeStep whole;

  void add(i64 rank, const StepSample& s) {
    if (!ranks.insert(rank).second) return;
    whole.repeat = s.repeat, whole.step = s.step;
    whole.warmup = whole.warmup || s.warmup;
    whole.step_ns = std::max(whole.step_ns, s.step_ns);
    whole.forward_ns = std::max(whole.forward_ns, s.forward_ns);
    whole.backward_ns = std::max(whole.backward_ns, s.backward_ns);
    if (s.forward_ns > 0 && s.backward_ns > 0)
      whole.forward_backward_ns = std::max(whole.forward_backward_ns, s.forward_ns + s.backward_ns);
    whole.optimizer_ns = std::max(whole.optimizer_ns, s.optimizer_ns);
    whole.update_ns = ranks.size() == 1 ? s.optimizer_ns : std::min(whole.update_ns, s.optimizer_ns);
    comm_everywhere = comm_everywhere && s.exposed_comm_ns && *s.exposed_comm_ns >= 0;
    whole.exposed_comm_ns = std::max(whole.exposed_comm_ns.value_or(0), s.exposed_comm_ns.value_or(0));
    if (s.data_ns) whole.data_ns = std::max(whole.data_ns.value_or(0), *s.data_ns);
    whole.tokens += s.tokens;
    whole.alloc_retries += s.alloc_retries;
    if (s.loss != 0)
      (s.tokens > 0 ? loss_by_tokens : loss_by_ranks)
          .add(s.loss, std::max(1.0, static_cast<double>(s.tokens)));
  }

  WholeStep done() const {
    WholeStep out = whole;
    out.loss = loss_by_tokens.value();
    if (!out.loss) out.loss = loss_by_ranks.value();
    if (!comm_everywhere) out.exposed_comm_ns.reset();
    return out;
  }
};

// Appends a measured part, or marks the column incomplete.
void append(std::vector<double>& column, bool& complete, i64 ns, bool measured) {
  complete = complete && measured;
  column.push_back(static_cast<double>(ns) / 1e6);
  if (!complete) column.clear();
}

// Ranks skip the same updates and count them. Those steps are the ones whose update took least time: it was left out.
void leave_skipped_out(std::vector<WholeStep>& timed, std::span<const RankRecord> records) {
  i64 skipped = 0;
  for (const RankRecord& r : records) skipped = std::max(skipped, r.skipped_steps.value_or(0));
  if (skipped == 0) return;
  std::ranges::sort(timed, {}, &WholeStep::update_ns);
  timed.erase(timed.begin(), timed.begin() + std::min(skipped, static_cast<i64>(timed.size())));
}

}  // namespace

i64 ranks_needed(const Trial& t, i64 processes) {
  return t.workload == Workload::kCommand ? 1 : processes;
}

std::vector<WholeStep> whole_steps(std::span<const RankRecord> records, i64 needed) {
  std::map<std::pair<i64, i64>, Gathering> by_step;  // (repeat, step)
  for (const RankRecord& r : records)
    for (const StepSample& s : r.samples) by_step[{s.repeat, s.step}].add(r.rank, s);
  std::vector<WholeStep> out;
  for (const auto& [key, s] : by_step)
    if (static_cast<i64>(s.ranks.size()) >= needed) out.push_back(s.done());
  return out;
}

Steps timed_steps(std::span<const RankRecord> records, i64 needed) {
  Steps out;
  bool step = true, forward = true, backward = true, both = true, optimizer = true, comm = true, data = true;
  std::vector<WholeStep> timed = whole_steps(records, needed);
  std::erase_if(timed, [](const WholeStep& s) { return s.warmup || s.step_ns <= 0; });
  leave_skipped_out(timed, records);
  for (const WholeStep& s : timed) {
    append(out.step, step, s.step_ns, true);
    append(out.forward, forward, s.forward_ns, s.forward_ns > 0);
    append(out.backward, backward, s.backward_ns, s.backward_ns > 0);
    append(out.forward_backward, both, s.forward_backward_ns, s.forward_backward_ns > 0);
    append(out.optimizer, optimizer, s.optimizer_ns, s.optimizer_ns > 0);
    append(out.exposed_comm, comm, s.exposed_comm_ns.value_or(0), s.exposed_comm_ns.has_value());
    append(out.data, data, s.data_ns.value_or(0), s.data_ns.has_value());
  }
  return out;
}

i64 ranks_with_timed_steps(std::span<const RankRecord> records) {
  return std::ranges::count_if(records, [](const RankRecord& r) {
    return std::ranges::any_of(r.samples, [](const StepSample& s) { return !s.warmup && s.step_ns > 0; });
  });
}

}  // namespace sweep::metrics
