// The steps that a grid needs, in an order in which each finds what it reads.
#include <algorithm>

#include "orchestrator/grid/spec.h"

namespace sweep::grid {
namespace {

using shape::Relation;
using ProvidedAxes = std::vector<bool>;

std::vector<Step> rank_steps(const AlgebraSlots& s, const ProvidedAxes& given, bool any_cpu) {
  std::vector<Step> steps;
  std::vector<Slot> ranks{s.hardware};
  if (given[s.dp] || any_cpu) ranks.insert(ranks.end(), {s.nodes, s.tp, s.pp, s.cp});
  if (given[s.dp]) ranks.push_back(s.dp);
  if (!given[s.gpus_per_node]) steps.push_back({Relation::kGpusPerNode, 0, ranks, s.gpus_per_node});
  if (!given[s.dp]) {
    steps.push_back({Relation::kDp, 0, {s.hardware, s.nodes, s.gpus_per_node, s.tp, s.pp, s.cp}, s.dp});
  }
  if (given[s.gpus_per_node]) {
    steps.push_back(
        {Relation::kPlacement, 0, {s.hardware, s.nodes, s.gpus_per_node, s.dp, s.tp, s.pp, s.cp}, {}});
  }
  steps.push_back({Relation::kWorld, 0, {s.dp, s.tp, s.pp, s.cp}, s.world});
  if (given[s.ep]) steps.push_back({Relation::kExperts, 0, {s.dp, s.cp, s.ep}, {}});
  return steps;
}

Step batch_step(const AlgebraSlots& s, const ProvidedAxes& given) {
  if (!given[s.global_batch_size]) {
    return {Relation::kGlobalBatch, 0, {s.dp, s.micro_batch_size, s.grad_accum}, s.global_batch_size};
  }
  if (!given[s.grad_accum]) {
    return {Relation::kGradAccum, 0, {s.dp, s.micro_batch_size, s.global_batch_size}, s.grad_accum};
  }
  return {Relation::kBatch, 0, {s.dp, s.micro_batch_size, s.grad_accum, s.global_batch_size}, {}};
}

// Depth first: what a step reads comes before it.
class Sorter {
 public:
  Sorter(const GridSpec& spec, std::vector<Step> steps)
      : spec_(spec),
        steps_(std::move(steps)),
        seen_(steps_.size(), Seen::kNo),
        writer_(spec.scope.size(), kNoWriter) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].writes) writer_[*steps_[i].writes] = i;
    }
  }
  tl::expected<Program, Cycle> run() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!visit(i)) return tl::unexpected(cycle_);
    }
    return std::move(sorted_);
  }

 private:
  enum class Seen : std::uint8_t { kNo, kOpen, kDone };
  static constexpr std::size_t kNoWriter = static_cast<std::size_t>(-1);

  bool visit(std::size_t i) {
    if (seen_[i] == Seen::kDone) return true;
    path_.push_back(i);
    if (seen_[i] == Seen::kOpen) return name_cycle(i);
    seen_[i] = Seen::kOpen;
    for (const Slot slot : steps_[i].reads) {
      if (writer_[slot] != kNoWriter && !visit(writer_[slot])) return false;
    }
    seen_[i] = Seen::kDone;
    path_.pop_back();
    sorted_.push_back(steps_[i]);
    return true;
  }
  bool name_cycle(std::size_t again) {
    const auto begin = std::find(path_.begin(), path_.end(), again);
    for (auto it = begin; it != path_.end(); ++it) {
      if (it != begin) cycle_.path += " -> ";
      cycle_.path += spec_.scope.at(*steps_[*it].writes).name;
      if (!steps_[*it].relation) cycle_.derived = steps_[*it].derived;
    }
    return false;
  }

  const GridSpec& spec_;
  std::vector<Step> steps_;
  std::vector<Seen> seen_;
  std::vector<std::size_t> writer_;  // index: slot
  std::vector<std::size_t> path_;
  Program sorted_;
  Cycle cycle_;
};

}  // namespace

tl::expected<Program, Cycle> order_steps(const GridSpec& spec, const ProvidedAxes& given, bool any_cpu,
                                         const std::vector<std::vector<Slot>>& derived_reads) {
  const AlgebraSlots slots(spec.scope);
  std::vector<Step> steps = rank_steps(slots, given, any_cpu);
  steps.push_back(batch_step(slots, given));
  for (std::size_t i = 0; i < spec.derived.size(); ++i) {
    steps.push_back({std::nullopt, static_cast<std::uint16_t>(i), derived_reads[i], spec.derived[i].slot});
  }
  return Sorter(spec, std::move(steps)).run();
}

}  // namespace sweep::grid
