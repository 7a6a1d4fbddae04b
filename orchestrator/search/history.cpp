#include "orchestrator/search/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "schema/audit.h"
#include "schema/codec.h"

namespace sweep::search {
namespace {

// The few axes that differ most often: a comparison of whole trials is dear.
bool same_shape(const Trial& a, const Trial& b) {
  return a.model == b.model && a.seq_len == b.seq_len && a.tp == b.tp && a.pp == b.pp && a.dp == b.dp &&
         a.cp == b.cp && a.zero == b.zero && a.precision == b.precision && a.nodes == b.nodes;
}

// The trial with the axes that may differ set alike, for comparison. A command holds its axes' values: they
// are compared as axes and labels.
Trial stripped(Trial t) {
  t.program.clear();
  if (t.workload != Workload::kCommand) t.labels.clear();
  return t;
}

Trial without_batch(const Trial& t) {
  Trial out = stripped(t);
  out.micro_batch_size = out.grad_accum = out.global_batch_size = 1;
  return out;
}

Trial without_recompute(const Trial& t) {
  Trial out = stripped(t);
  out.recompute = Recompute::kNone, out.recompute_every = 1;
  return out;
}

RuledOut by_memory(const Candidate& oom, std::size_t larger, const Candidate& c) {
  return {
      larger, std::string(kHistoryRule),
      fmt::format("trial {} of the same layout ran out of memory with micro_batch_size {}; this one has {}",
                  oom.id, oom.trial->micro_batch_size, c.trial->micro_batch_size)};
}

RuledOut by_recompute(const Candidate& fits, std::size_t with, const Candidate&) {
  return {with, std::string(kRecomputeRule),
          fmt::format("trial {} is the same without recomputation, and it fits", fits.id)};
}

}  // namespace

// The batch of a rank and step is larger, or as large: with the same global batch fewer micro-steps come of
// larger micro-batches. A single micro-step may do without buffers that several need. Where memory is
// predicted, it must not shrink.
bool out_of_memory_too(const Candidate& oom, const Candidate& larger) {
  const Trial &a = *oom.trial, &b = *larger.trial;
  if (oom.host_oom || b.micro_batch_size <= a.micro_batch_size || !same_shape(a, b)) return false;
  const bool same_steps = a.grad_accum == b.grad_accum;
  const bool same_batch =
      a.global_batch_size == b.global_batch_size && (a.grad_accum > 1) == (b.grad_accum > 1);
  if (!same_steps && !same_batch) return false;
  if (oom.predicted_bytes && larger.predicted_bytes && *larger.predicted_bytes < *oom.predicted_bytes)
    return false;
  return without_batch(a) == without_batch(b);
}

bool only_recomputes(const Candidate& fits, const Candidate& with) {
  const Trial &a = *fits.trial, &b = *with.trial;
  return a.recompute == Recompute::kNone && b.recompute != Recompute::kNone &&
         a.micro_batch_size == b.micro_batch_size && same_shape(a, b) &&
         without_recompute(a) == without_recompute(b);
}

History::History(std::span<const Candidate> all, Conclusions draw)
    : batches_(draw.memory ? alike(all, without_batch) : Alike()),
      recomputations_(draw.recompute ? alike(all, without_recompute) : Alike()) {}

History::Alike History::alike(std::span<const Candidate> all, Trial (*without)(const Trial&)) {
  Alike out;
  std::unordered_map<std::string, std::size_t> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t group = found.try_emplace(trial_id(without(*all[i].trial)), found.size()).first->second;
    if (group == out.groups.size()) out.groups.emplace_back();
    out.groups[group].push_back(i), out.group_of.push_back(group);
  }
  return out;
}

std::vector<RuledOut> History::concluded_from(std::span<const Candidate> all, std::size_t candidate) const {
  std::vector<RuledOut> out;
  const auto conclude = [&](const Alike& among, TrialStatus ended, auto rules_out, auto as_ruled_out) {
    const bool waits = all[candidate].status == TrialStatus::kWaiting;
    if (among.groups.empty() || (!waits && all[candidate].status != ended)) return;
    for (const std::size_t other : among.groups[among.group_of[candidate]]) {
      const auto [from, to] = waits ? std::pair(other, candidate) : std::pair(candidate, other);
      if (all[from].status == ended && all[to].status == TrialStatus::kWaiting &&
          rules_out(all[from], all[to]) && (out.empty() || out.back().candidate != to))
        out.push_back(as_ruled_out(all[from], to, all[to]));
    }
  };
  conclude(batches_, TrialStatus::kOutOfMemory, out_of_memory_too, by_memory);
  conclude(recomputations_, TrialStatus::kMeasured, only_recomputes, by_recompute);
  return out;
}

void smaller_first(std::span<PlanEntry> entries) {
  std::vector<PlanEntry*> admitted;
  std::vector<Candidate> all;
  for (PlanEntry& entry : entries) {
    if (!entry.admitted) continue;
    admitted.push_back(&entry);
    all.push_back(candidate_of(entry, {}));
  }
  for (const Group& layout : layouts(all)) {
    std::vector<i64> places;
    for (const std::size_t i : layout) places.push_back(admitted[i]->order);
    std::ranges::sort(places);
    for (std::size_t n = 0; n < layout.size(); ++n) admitted[layout[n]]->order = places[n];
  }
}

}  // namespace sweep::search
