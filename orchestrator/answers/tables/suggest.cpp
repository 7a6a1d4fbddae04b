#include "orchestrator/answers/tables/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/statistics/best.h"
#include "schema/codec.h"
#include "schema/columns.h"
#include "schema/labels.h"
#include "schema/ranking.h"
#include "schema/rehearsal.h"

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

constexpr std::array<std::string_view, 3> kAxesOfTheBatch{"micro_batch_size", "grad_accum",
                                                          "global_batch_size"};
// The first lines of a suggestion say these; the batch in all follows from the others.
constexpr std::array<std::string_view, 8> kSaidFirst{"model",         "hardware",         "nodes",
                                                     "gpus_per_node", "micro_batch_size", "seq_len",
                                                     "recompute",     "global_batch_size"};
// The layout and the precision are said also where they are the default.
constexpr std::array<std::string_view, 6> kAlwaysSaid{"dp", "tp", "pp", "cp", "zero", "precision"};

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

bool same_but_batch(const ResultRow& a, const ResultRow& b) {
  return a.trial.labels == b.trial.labels && std::ranges::all_of(columns(), [&](const Column& c) {
           return c.role != Role::kAxis || is_among(kAxesOfTheBatch, c.key) || c.get(a) == c.get(b);
         });
}

// The other axes that the trial has not at their defaults: without them it is another configuration. Axes of the grid's own
// are comments: no other grid has them.
std::string axes_of(const ResultRow& row) {
  std::string out;
  const nlohmann::json labels = label_members(row.trial.labels);
  for (const auto& [name, value] : labels.items())
    if (is_label_name(name)) out += fmt::format("# {}: {}\n", safe_text(name), safe_text(value.dump()));
  for (const Column& c : columns()) {
    if (c.role != Role::kAxis || is_among(kSaidFirst, c.key) || c.key == "workload") continue;
    if (is_among(kAlwaysSaid, c.key) || c.get(row) != c.default_value) out += axis_line(c, row);
  }
  return out;
}

const ResultRow& fastest_of(const std::vector<ResultRow>& rows) {
  return *std::ranges::min_element(rows, [](const ResultRow& a, const ResultRow& b) {
    return goes_before(Better::kHigher, a, *useful_rate(a.metrics), b, *useful_rate(b.metrics));
  });
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

Suggestion suggestion(const Seen& seen) {
  std::set<std::string_view> ran;  // a result that a sweep reused is there twice
  for (const ResultRow& row : seen.ran) ran.insert(row.trial_id);
  Suggestion out{fastest_of(seen.ran), static_cast<i64>(ran.size()), {}, {}, {}, {}};
  for (const auto& row : seen.ran) {
    const Trial& t = row.trial;
    out.padding |= has_padding(row.metrics);
    if (knows_axis(t.labels, "micro_batch_size") && same_but_batch(row, out.best))
      out.largest_batch = std::max(out.largest_batch.value_or(0), t.micro_batch_size);
    if (!knows_axis(t.labels, "seq_len")) continue;
    out.longest = std::max(out.longest.value_or(0), t.seq_len);
    if (knows_axis(t.labels, "recompute") && t.recompute == Recompute::kNone)
      out.longest_kept = std::max(out.longest_kept.value_or(0), t.seq_len);
  }
  for (const auto& row : seen.out_of_memory)
    if (same_but_batch(row, out.best))
      out.batch_beyond =
          std::min(out.batch_beyond.value_or(row.trial.micro_batch_size), row.trial.micro_batch_size);
  return out;
}

std::string context_text(const Suggestion& of) {
  if (!knows_axis(of.best.trial.labels, "recompute")) return fmt::format("ran up to {}", *of.longest);
  if (!of.longest_kept) return fmt::format("ran up to {}, always with recomputation", *of.longest);
  if (of.longest_kept == of.longest) return fmt::format("ran up to {} without recomputation", *of.longest);
  return fmt::format("ran up to {} without recomputation, up to {} with it", *of.longest_kept, *of.longest);
}

// The line of an axis with a remark behind it; none where the program of the trial knows no such axis.
std::string remarked(std::string_view key, const Suggestion& of, const std::string& remark) {
  std::string line = axis_line(*find_column(key), of.best);
  if (!line.empty() && !remark.empty()) line.insert(line.size() - 1, "  # " + remark);
  return line;
}

std::string yaml_of(const Suggestion& of) {
  const Trial& t = of.best.trial;
  const auto beyond = of.batch_beyond ? fmt::format(", out of memory from {}", *of.batch_beyond) : "";
  return fmt::format(
             "# {} on {} with {} x {}: fastest of {} that ran, {:.4g} {}tokens/s per rank (trial {})\n",
             safe_text(t.model), counted(t.nodes, "node"), t.gpus_per_node, safe_text(t.hardware), of.ran,
             *useful_rate(of.best.metrics), of.padding ? "useful " : "", of.best.trial_id) +
         remarked(
             "micro_batch_size", of,
             of.largest_batch ? fmt::format("with these: ran up to {}{}", *of.largest_batch, beyond) : "") +
         remarked("seq_len", of, of.longest ? context_text(of) : "") + remarked("recompute", of, "") +
         axes_of(of.best);
}

}  // namespace

Expected<std::vector<ResultRow>> measured_rows(store::Store& store, const std::string& model,
                                               const std::string& but_sweep) {
  SWEEP_GET(const auto sweeps, store.sweeps());
  std::vector<ResultRow> out;
  for (const auto& sweep : sweeps) {
    if (is_rehearsal(sweep.name) || sweep.name == but_sweep) continue;
    SWEEP_GET(auto rows, store.results(sweep.id));
    for (ResultRow& row : rows)
      if (model.empty() || row.trial.model == model) out.push_back(std::move(row));
  }
  return out;
}

std::vector<Suggestion> suggestions(std::vector<ResultRow> rows) {
  std::vector<Suggestion> out;
  for (const auto& [place, seen] : seen_in(std::move(rows))) out.push_back(suggestion(seen));
  return out;
}

std::string suggestions_yaml(std::span<const Suggestion> all) {
  std::string out;
  for (const Suggestion& each : all) out += yaml_of(each);
  return out;
}

nlohmann::json suggestions_json(std::span<const Suggestion> all) {
  nlohmann::json out = nlohmann::json::array();
  for (const Suggestion& each : all)
    out.push_back({{"trial", each.best.trial_id},
                   {"sweep", each.best.sweep},
                   {"configuration", to_json(each.best.trial)},
                   {"tokens_per_s_gpu", *each.best.metrics.tokens_per_s_gpu},
                   {"useful_tokens_per_s_gpu", *useful_rate(each.best.metrics)},
                   {"ran", each.ran},
                   {"largest_micro_batch_size", or_null(each.largest_batch)},
                   {"out_of_memory_from_micro_batch_size", or_null(each.batch_beyond)},
                   {"longest_seq_len", or_null(each.longest)},
                   {"longest_seq_len_without_recompute", or_null(each.longest_kept)}});
  return out;
}

}  // namespace sweep::answers
