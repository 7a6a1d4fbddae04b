#include "orchestrator/search/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace sweep::search {
namespace {

// The few axes that differ most often: a comparison of whole trials is dear.
bool alike(const Trial& a, const Trial& b) {
  return a.model == b.model && a.seq_len == b.seq_len && a.tp == b.tp && a.pp == b.pp && a.dp == b.dp &&
         a.cp == b.cp && a.zero == b.zero && a.precision == b.precision && a.nodes == b.nodes;
}

// What is left to compare once the axes that may differ are set alike. A command holds its axes' values: they
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

RuledOut by_memory(const Candidate& oom, std::size_t larger, i64 size) {
  return {
      larger, "history",
      fmt::format("trial {} of the same layout ran out of memory with micro_batch_size {}; this one has {}",
                  oom.id, oom.trial->micro_batch_size, size)};
}

RuledOut by_recompute(const Candidate& fits, std::size_t with) {
  return {with, "recompute", fmt::format("trial {} is the same without recomputation, and it fits", fits.id)};
}

}  // namespace

// The batch of a rank and step is larger, or as large: with the same global batch fewer micro-steps come of
// larger micro-batches. A single micro-step may do without buffers that several need. Where memory is
// predicted, it must not shrink.
bool out_of_memory_too(const Candidate& oom, const Candidate& larger) {
  const Trial &a = *oom.trial, &b = *larger.trial;
  if (oom.host_oom || b.micro_batch_size <= a.micro_batch_size || !alike(a, b)) return false;
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
         a.micro_batch_size == b.micro_batch_size && alike(a, b) &&
         without_recompute(a) == without_recompute(b);
}

std::vector<RuledOut> ruled_out_by(const Candidate& ended, std::span<const Candidate> all, Conclusions draw) {
  std::vector<RuledOut> out;
  const bool oom = draw.memory && ended.standing == Standing::kOutOfMemory;
  const bool fits = draw.recompute && ended.standing == Standing::kMeasured;
  if (!oom && !fits) return out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].standing != Standing::kWaiting) continue;
    if (oom && out_of_memory_too(ended, all[i]))
      out.push_back(by_memory(ended, i, all[i].trial->micro_batch_size));
    else if (fits && only_recomputes(ended, all[i]))
      out.push_back(by_recompute(ended, i));
  }
  return out;
}

std::vector<RuledOut> ruled_out_by_history(std::span<const Candidate> all, const std::vector<Group>& layouts,
                                           Conclusions draw) {
  std::vector<RuledOut> out;
  std::vector<bool> gone(all.size());
  for (const Group& layout : layouts) {
    for (const std::size_t oom : layout) {
      if (!draw.memory || all[oom].standing != Standing::kOutOfMemory) continue;
      for (const std::size_t i : layout) {
        if (gone[i] || all[i].standing != Standing::kWaiting || !out_of_memory_too(all[oom], all[i]))
          continue;
        gone[i] = true;
        out.push_back(by_memory(all[oom], i, all[i].trial->micro_batch_size));
      }
    }
  }
  if (!draw.recompute) return out;
  std::unordered_multimap<std::string, std::size_t> fits;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].standing == Standing::kMeasured && all[i].trial->recompute == Recompute::kNone)
      fits.emplace(trial_id(without_recompute(*all[i].trial)), i);
  for (std::size_t i = 0; i < all.size() && !fits.empty(); ++i) {
    if (gone[i] || all[i].standing != Standing::kWaiting || all[i].trial->recompute == Recompute::kNone)
      continue;
    const auto [from, to] = fits.equal_range(trial_id(without_recompute(*all[i].trial)));
    for (auto each = from; each != to && !gone[i]; ++each)
      if (only_recomputes(all[each->second], all[i]))
        gone[i] = true, out.push_back(by_recompute(all[each->second], i));
  }
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
