// The order in which trials run when all of them do.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/plan/planner.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/memory.h"

namespace sweep::plan {
namespace {

constexpr double kLast = std::numeric_limits<double>::infinity();

// Each entry's name as its number among the names in their order, which compares faster.
template <class NameOf>
std::vector<std::size_t> numbered(const std::vector<PlanEntry>& entries, NameOf name_of) {
  std::map<std::string_view, std::size_t> numbers;
  for (const PlanEntry& e : entries) numbers.emplace(name_of(e), 0);
  std::size_t next = 0;
  for (auto& [name, number] : numbers) number = next++;
  std::vector<std::size_t> out;
  for (const PlanEntry& e : entries) out.push_back(numbers.find(name_of(e))->second);
  return out;
}

// Seconds per token of a step: trials of the same model and sequence length are compared by it.
double seconds_per_token(const PlanEntry& e) {
  const double step = e.predicted.step_ms.value_or(kLast);
  const double tokens = static_cast<double>(e.trial.global_batch_size) * static_cast<double>(e.trial.seq_len);
  return std::isnan(step) ? kLast : step / tokens;
}

// The keys that decide the place of an entry, apart from the entry itself, which is large.
struct Place {
  bool pruned = false;
  std::size_t hardware = 0;
  i64 nodes = 1, gpus_per_node = 1;
  std::size_t model = 0;
  i64 seq_len = 0;
  double seconds_per_token = 0, seconds = 0;
  std::size_t rank = 0;   // by rate, among those of its question
  std::size_t index = 0;  // place in the order of the grid

  auto placement() const { return std::tuple(pruned, hardware, nodes, gpus_per_node); }
  auto question() const { return std::tuple(placement(), model, seq_len); }
  auto by_rate() const { return std::tuple(question(), seconds_per_token, index); }
  auto by_turn() const { return std::tuple(placement(), rank, seconds, index); }
};

std::vector<Place> places_of(const std::vector<PlanEntry>& entries) {
  const auto hardware =
      numbered(entries, [](const PlanEntry& e) -> std::string_view { return e.trial.hardware; });
  const auto models = numbered(entries, [](const PlanEntry& e) -> std::string_view { return e.trial.model; });
  std::vector<Place> out;
  out.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const PlanEntry& e = entries[i];
    out.push_back({!e.admitted, hardware[i], e.trial.nodes, e.trial.gpus_per_node, models[i], e.trial.seq_len,
                   seconds_per_token(e), e.predicted.seconds.value_or(kLast), 0, i});
  }
  return out;
}

}  // namespace

void set_order(std::vector<PlanEntry>& entries) {
  std::vector<Place> places = places_of(entries);
  std::ranges::sort(places, {}, &Place::by_rate);
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i].question() == places[i - 1].question()) places[i].rank = places[i - 1].rank + 1;
  std::ranges::sort(places, {}, &Place::by_turn);
  for (std::size_t i = 0; i < places.size(); ++i) entries[places[i].index].order = static_cast<i64>(i);
}

std::optional<double> memory_share(const PlanEntry& entry) {
  const shape::Hardware* hardware = shape::known_hardware(entry.trial.hardware);
  if (!entry.predicted.bytes || hardware == nullptr || first_objection(entry.trial)) return {};
  const auto budget = predict::memory_budget(entry.trial, *hardware);
  if (!budget || *budget <= 0) return {};
  return shape::real(*entry.predicted.bytes) / *budget;
}

}  // namespace sweep::plan
