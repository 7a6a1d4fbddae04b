#include "orchestrator/plan/memory_pruning.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "bench_kernels/shape/step_sizes.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"
#include "schema/audit.h"
#include "schema/rank_variables.h"
#include "schema/run_order.h"

namespace sweep::plan {
namespace {

std::optional<double> limit_of(const Trial& t) {
  if (t.workload != Workload::kStep) return std::nullopt;
  const shape::Hardware* hardware = shape::known_hardware(t.hardware);
  return hardware ? predict::memory_budget(t, *hardware) : std::nullopt;
}

std::string sentence(const PlanEntry& e, double bytes, double limit, const MeasuredMemory* measured,
                     double margin) {
  if (measured != nullptr && !measured->refusal.empty()) return measured->refusal;
  if (measured != nullptr)
    return fmt::format("a dry run of the step needs {} on the fullest rank, the limit is {}",
                       human_bytes(bytes), human_bytes(limit));
  return predict::memory_sentence(predict::estimate_memory(e.trial), limit) +
         fmt::format("; that is {:.1f} % above it, more than the margin of {:.0f} %",
                     100 * (bytes / limit - 1), 100 * margin);
}

// Entries that run stay in their order, before the others.
void number_again(std::vector<PlanEntry>& entries) {
  std::vector<PlanEntry*> order;
  for (PlanEntry& e : entries) order.push_back(&e);
  std::ranges::stable_sort(order, {},
                           [](const PlanEntry* e) { return std::pair(!e->admitted, run_place(*e)); });
  for (std::size_t i = 0; i < order.size(); ++i) order[i]->order = static_cast<i64>(i);
}

}  // namespace

namespace {

// Its memory was all that spoke against it so far.
void admit_again(PlanEntry& e, const MeasurePlan& measure) {
  e.admitted = true, e.rule.clear(), e.reason.clear();
  if (const auto o = later_objection(e.trial, measure)) reject(e, *o);
}

bool is_on_gpu(const PlanEntry& e) {
  return shape::kernel_path(e.trial) == shape::KernelPath::kGpu;
}

// On a GPU the allocator's answer counts: it knows the limit to the segment.
bool is_too_large(const PlanEntry& e, double share, const MeasuredMemory* measured, double margin) {
  if (measured == nullptr) return share > 1 + margin;
  return is_on_gpu(e) && !changes_allocator(e) ? !measured->refusal.empty() : share > 1;
}

}  // namespace

bool changes_allocator(const PlanEntry& e) {
  const auto variables = rank_variables_from(e.trial.env);
  return is_on_gpu(e) && variables && change_the_allocator(*variables);
}

std::optional<double> share_of_limit(const PlanEntry& e) {
  const auto limit = limit_of(e.trial);
  if (!limit || !e.predicted.bytes) return std::nullopt;
  return static_cast<double>(*e.predicted.bytes) / *limit;
}

void prune_memory(std::vector<PlanEntry>& entries, const MemoryPruning& pruning) {
  for (PlanEntry& e : entries) {
    const auto found = pruning.dry_runs.find(e.id);
    const MeasuredMemory* measured = found != pruning.dry_runs.end() ? &found->second : nullptr;
    if (measured != nullptr) e.predicted.bytes = static_cast<i64>(measured->bytes);
    if (measured != nullptr && e.rule == "memory") admit_again(e, pruning.measure);
    const auto share = share_of_limit(e);
    if (!e.admitted || !share || !is_too_large(e, *share, measured, pruning.margin)) continue;
    e.admitted = false, e.verdict = Outcome::kPruned, e.rule = "memory";
    const double bytes = static_cast<double>(*e.predicted.bytes);
    e.reason = sentence(e, bytes, bytes / *share, measured, pruning.margin);
  }
  for (PlanEntry& e : entries)
    if (!e.admitted && e.rule == "memory" && is_in_audit(e.id, pruning.audit))
      e.admitted = !later_objection(e.trial, pruning.measure);
  number_again(entries);
}

std::vector<const PlanEntry*> near_memory_limit(std::span<const PlanEntry> entries, double margin) {
  constexpr double kMostBelow = 0.1, kReserved = 0.2;  // a wide margin is about what lies above
  std::vector<const PlanEntry*> near;
  for (const PlanEntry& e : entries) {
    const auto share = e.admitted || e.rule == "memory" ? share_of_limit(e) : std::nullopt;
    const double below = is_on_gpu(e) ? kReserved : std::min(margin, kMostBelow);
    if (share && *share >= 1 - below && *share <= 1 + margin) near.push_back(&e);
  }
  return near;
}

}  // namespace sweep::plan
