#include "orchestrator/run/pending_queue.h"

#include <algorithm>

#include "base/expected.h"

namespace sweep::run {
namespace {
// Trials read at once.
constexpr i64 kPageSize = 512;
// Pages that are kept: one for each kind of allocation.
constexpr std::size_t kMostPages = 16;
}  // namespace

Expected<std::optional<PlanEntry>> PendingQueue::next(const std::optional<store::Fit>& fit, i64 look_ahead,
                                                      const std::function<bool(const PlanEntry&)>& takes) {
  const auto key =
      fit ? std::tuple(fit->nodes, fit->hardware, fit->gpus_per_node) : std::tuple(i64{0}, "", i64{0});
  if (!pages_.contains(key) && pages_.size() >= kMostPages) pages_.clear();
  Page& page = pages_[key];
  // Trials that a guide chose before the last result may be ruled out by now.
  if (guide_ != nullptr && page.version != version_) SWEEP_TRY(read(page, fit));
  for (;;) {
    if (const PlanEntry* found = look(page, look_ahead, takes)) return std::optional(*found);
    const bool more_unread = page.trials.empty() && !page.whole;
    if (page.version == version_ && !more_unread) return std::optional<PlanEntry>();
    SWEEP_TRY(read(page, fit));
  }
}

const PlanEntry* PendingQueue::look(Page& page, i64 look_ahead,
                                    const std::function<bool(const PlanEntry&)>& takes) {
  auto& trials = page.trials;
  while (!trials.empty() && page.gone.contains(trials.front().id)) trials.pop_front();
  for (const PlanEntry& entry : trials) {
    if (page.gone.contains(entry.id)) continue;
    if (takes(entry)) return &entry;
    if (--look_ahead <= 0) break;
  }
  return nullptr;
}

Expected<void> PendingQueue::ask_guide() {
  if (chosen_) return {};
  SWEEP_GET(chosen_, guide_->choose());
  return {};
}

Expected<void> PendingQueue::read_chosen(Page& page, const std::optional<store::Fit>& fit) {
  SWEEP_TRY(ask_guide());
  page = {};
  for (const PlanEntry& entry : *chosen_) {
    const Trial& t = entry.trial;
    if (!fit || ((fit->whole ? t.nodes == fit->nodes : t.nodes <= fit->nodes) &&
                 t.hardware == fit->hardware && t.gpus_per_node <= fit->gpus_per_node))
      page.trials.push_back(entry);
  }
  page.version = version_;
  page.whole = true;
  return {};
}

Expected<void> PendingQueue::read(Page& page, const std::optional<store::Fit>& fit) {
  if (guide_ != nullptr) return read_chosen(page, fit);
  SWEEP_GET(auto waiting, fit ? store_.pending(sweep_, kPageSize, *fit) : store_.pending(sweep_, kPageSize));
  page = {};
  for (auto& each : waiting) page.trials.push_back(std::move(each.entry));
  page.version = version_;
  page.whole = static_cast<i64>(waiting.size()) < kPageSize;
  return {};
}

Expected<std::vector<store::Demand>> PendingQueue::demand() {
  if (guide_ != nullptr) {
    SWEEP_TRY(ask_guide());
    return guide_->demand(*chosen_);
  }
  if (!demand_) {
    auto read = store_.demand(sweep_);
    if (!read) return read;
    demand_ = std::move(*read);
  }
  return *demand_;
}

Expected<i64> PendingQueue::waiting_nodes(const std::string& hardware) {
  SWEEP_GET(const auto groups, demand());
  i64 out = 0;
  for (const auto& group : groups)
    if (group.hardware == hardware) out += group.trials * group.nodes;
  return out;
}

void PendingQueue::handed_out(const PlanEntry& entry) {
  for (auto& [key, page] : pages_) page.gone.insert(entry.id);
  if (chosen_) std::erase_if(*chosen_, [&](const PlanEntry& each) { return each.id == entry.id; });
  if (!demand_) return;
  const auto group = std::ranges::find_if(*demand_, [&](const store::Demand& each) {
    return each.hardware == entry.trial.hardware && each.nodes == entry.trial.nodes;
  });
  if (group == demand_->end()) return demand_.reset();
  group->unpredicted -= !entry.predicted.seconds;
  group->predicted_s = std::max(0.0, group->predicted_s - entry.predicted.seconds.value_or(0));
  if (--group->trials <= 0) demand_->erase(group);
}

void PendingQueue::withdraw(const std::vector<std::string>& ids) {
  if (ids.empty()) return;
  for (auto& [key, page] : pages_) page.gone.insert(ids.begin(), ids.end());
  demand_.reset();
}

void PendingQueue::changed() {
  ++version_;
  demand_.reset();
  chosen_.reset();
}

void PendingQueue::ended(Outcome outcome) {
  if (guide_ != nullptr || !is_always_final(outcome)) changed();
}

}  // namespace sweep::run
