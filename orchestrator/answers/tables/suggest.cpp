#include "orchestrator/answers/tables/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "orchestrator/answers/format.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

// One model on so many ranks of one hardware.
struct Place {
  std::string model, hardware;
  i64 nodes = 1, gpus_per_node = 1;
  auto operator<=>(const Place&) const = default;
};
struct Seen {
  std::vector<ResultRow> ran, out_of_memory;
};

bool same_but_batch(const Trial& a, const Trial& b) {
  return a.seq_len == b.seq_len && a.recompute == b.recompute && a.precision == b.precision &&
         a.zero == b.zero && a.tp == b.tp && a.pp == b.pp && a.cp == b.cp;
}

const ResultRow& fastest_of(const std::vector<ResultRow>& rows) {
  return *std::ranges::min_element(rows, [](const ResultRow& a, const ResultRow& b) {
    return goes_before(Better::kHigher, a, *a.metrics.tokens_per_s_gpu, b, *b.metrics.tokens_per_s_gpu);
  });
}

// "ran up to 8, out of memory from 16"
std::string batch_text(const Seen& seen, const Trial& best) {
  i64 largest = 0;
  std::optional<i64> beyond;
  for (const auto& row : seen.ran)
    if (same_but_batch(row.trial, best)) largest = std::max(largest, row.trial.micro_batch_size);
  for (const auto& row : seen.out_of_memory)
    if (same_but_batch(row.trial, best))
      beyond = std::min(beyond.value_or(row.trial.micro_batch_size), row.trial.micro_batch_size);
  return fmt::format("ran up to {}{}", largest,
                     beyond ? fmt::format(", out of memory from {}", *beyond) : "");
}

std::string context_text(const Seen& seen) {
  i64 longest = 0;
  std::optional<i64> longest_kept;
  for (const auto& row : seen.ran) {
    longest = std::max(longest, row.trial.seq_len);
    if (row.trial.recompute == Recompute::kNone)
      longest_kept = std::max(longest_kept.value_or(0), row.trial.seq_len);
  }
  if (!longest_kept) return fmt::format("ran up to {}, always with recomputation", longest);
  if (*longest_kept == longest) return fmt::format("ran up to {} without recomputation", longest);
  return fmt::format("ran up to {} without recomputation, up to {} with it", *longest_kept, longest);
}

std::map<Place, Seen> seen_in(std::vector<ResultRow> rows) {
  std::map<Place, Seen> out;
  for (ResultRow& row : rows) {
    const Trial& t = row.trial;
    if (row.state != State::kFinished) continue;
    Seen& seen = out[{t.model, t.hardware, t.nodes, t.gpus_per_node}];
    if (row.outcome == Outcome::kOk && row.metrics.tokens_per_s_gpu)
      seen.ran.push_back(std::move(row));
    else if (row.outcome == Outcome::kOom)
      seen.out_of_memory.push_back(std::move(row));
  }
  std::erase_if(out, [](const auto& each) { return each.second.ran.empty(); });
  return out;
}

std::string suggestion(const Place& place, const Seen& seen) {
  const ResultRow& best = fastest_of(seen.ran);
  const Trial& t = best.trial;
  return fmt::format(
             "# {} on {} node{} with {} x {}: fastest of {} that ran, {:.4g} tokens/s per rank (trial {})\n",
             safe_text(place.model), place.nodes, place.nodes == 1 ? "" : "s", place.gpus_per_node,
             safe_text(place.hardware), seen.ran.size(), *best.metrics.tokens_per_s_gpu, best.trial_id) +
         fmt::format("micro_batch_size: {}  # with these: {}\n", t.micro_batch_size, batch_text(seen, t)) +
         fmt::format("seq_len: {}  # {}\n", t.seq_len, context_text(seen)) +
         fmt::format("recompute: {}\n", to_string(t.recompute)) +
         fmt::format("dp: {}\ntp: {}\npp: {}\ncp: {}\nzero: {}\nprecision: {}\n", t.dp, t.tp, t.pp, t.cp,
                     t.zero, to_string(t.precision));
}

}  // namespace

std::string suggestions(std::vector<ResultRow> rows) {
  std::string out;
  for (const auto& [place, seen] : seen_in(std::move(rows))) out += suggestion(place, seen);
  return out;
}

}  // namespace sweep::answers
