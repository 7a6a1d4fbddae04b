// playbook: the three steps of the Ultra-Scale Playbook, one question at a time: a trial that fits, then the
// largest global batch, then the fastest, by one change after another.
// https://huggingface.co/spaces/nanotron/ultrascale-playbook
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "orchestrator/search/chooser.h"
#include "orchestrator/search/features.h"
#include "orchestrator/search/labels.h"

namespace sweep::search {
namespace {

// Axes that follow from others: a neighbour may differ in them besides.
constexpr std::array<std::string_view, 3> kFollow = {"dp", "grad_accum", "global_batch_size"};
// The axes that are changed first while tuning; the others follow in the order of the table.
constexpr std::array<std::string_view, 5> kTuned = {"micro_batch_size", "tp", "zero", "pp", "recompute"};
// Below it a neighbour is not worth a trial: of fitting, and of its predicted rate over that of the best.
constexpr double kLeastChance = 0.2, kLeastShare = 0.7;

struct Step {
  std::size_t candidate = 0;
  std::string why;
};

class Playbook final : public Chooser {
 public:
  Playbook(std::span<const Candidate> all, const Group& group, const Strategy& strategy)
      : all_(all), group_(group), strategy_(strategy), features_(all, group) {}
  void decide(i64& left, Decision&) override;

 private:
  const Candidate& at(std::size_t i) const { return all_[group_[i]]; }
  bool waits(std::size_t i) const { return at(i).status == TrialStatus::kWaiting; }
  const Trial& trial(std::size_t i) const { return *at(i).trial; }

  // nullopt: nothing is left that the playbook asks for.
  std::optional<Step> next() const {
    if (!best_) return fit();
    if (auto step = reach_batch()) return step;
    return tune();
  }

  // The fastest with the largest global batch that was measured.
  std::optional<std::size_t> fastest() const {
    const auto key = [&](std::size_t i) { return std::tuple(trial(i).global_batch_size, at(i).rate); };
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < group_.size(); ++i)
      if (at(i).status == TrialStatus::kMeasured && (!best || key(i) > key(*best))) best = i;
    return best;
  }

  // The least model parallelism, then the least ZeRO and recomputation, that probably fits; after a failure
  // only what fits more surely.
  std::optional<Step> fit() const {
    double surer_than = 0;
    for (const std::size_t i : tried_)
      if (at(i).status != TrialStatus::kMeasured) surer_than = std::max(surer_than, at(i).fit_chance);
    const auto key = [&](std::size_t i) {
      const Trial& t = trial(i);
      const Candidate& c = at(i);
      const bool surer = surer_than == 0 || c.fit_chance > surer_than;
      return std::tuple(!surer, c.fit_chance<0.5, t.tp> t.gpus_per_node, t.tp * t.pp * t.cp, t.zero,
                        t.recompute, t.micro_batch_size);
    };
    std::optional<std::size_t> least;
    for (std::size_t i = 0; i < group_.size(); ++i)
      if (waits(i) && (!least || key(i) < key(*least))) least = i;
    if (!least) return {};
    const Trial& t = trial(*least);
    return Step{
        *least,
        fmt::format("step 1, fit: tp {} pp {} cp {} zero {} recompute {} is the least that fits with a "
                    "chance of {:.0f} %",
                    t.tp, t.pp, t.cp, t.zero, t.recompute, 100 * at(*least).fit_chance)};
  }

  std::optional<Step> reach_batch() const {
    const i64 reached = trial(*best_).global_batch_size;
    std::optional<std::size_t> chosen;
    const auto key = [&](std::size_t i) {
      return std::tuple(-trial(i).global_batch_size, features_.distance(i, *best_));
    };
    for (std::size_t i = 0; i < group_.size(); ++i)
      if (waits(i) && trial(i).global_batch_size > reached && at(i).fit_chance >= kLeastChance &&
          (!chosen || key(i) < key(*chosen)))
        chosen = i;
    if (!chosen) return {};
    const Trial& t = trial(*chosen);
    return Step{*chosen, fmt::format("step 2, global batch: from {} to {} with dp {} and grad_accum {}",
                                     reached, t.global_batch_size, t.dp, t.grad_accum)};
  }

  // The axis in which a candidate alone differs from the best; nullopt: several, or none.
  std::optional<std::size_t> only_change(std::size_t i) const {
    std::optional<std::size_t> changed;
    for (std::size_t axis = 0; axis < features_.axes(); ++axis) {
      if (std::ranges::find(kFollow, features_.name(axis)) != kFollow.end()) continue;
      if (features_.distance(axis, i, *best_) == 0) continue;
      if (changed) return {};
      changed = axis;
    }
    return changed;
  }

  std::optional<Step> tune() const {
    std::optional<std::size_t> chosen, axis_of_chosen;
    const auto key = [&](std::size_t i, std::size_t axis) {
      const auto place = std::ranges::find(kTuned, features_.name(axis)) - kTuned.begin();
      return std::tuple(place, axis, features_.distance(axis, i, *best_), -at(i).predicted_rate.value_or(0));
    };
    for (std::size_t i = 0; i < group_.size(); ++i) {
      if (!waits(i) || trial(i).global_batch_size != trial(*best_).global_batch_size) continue;
      const auto axis = only_change(i);
      if (!axis || !worth(i) || beyond_a_measured_one(i, *axis)) continue;
      if (!chosen || key(i, *axis) < key(*chosen, *axis_of_chosen)) chosen = i, axis_of_chosen = axis;
    }
    if (!chosen) return {};
    const auto& name = features_.name(*axis_of_chosen);
    return Step{
        *chosen,
        fmt::format("step 3, tune: {} {} instead of {}, the fastest so far ({:.4g} tokens/s per rank)", name,
                    value_text(trial(*chosen), name), value_text(trial(*best_), name), at(*best_).rate)};
  }

  bool worth(std::size_t i) const {
    const Candidate& c = at(i);
    const double predicted = c.predicted_rate.value_or(1) / at(*best_).predicted_rate.value_or(1);
    return c.fit_chance >= kLeastChance && predicted >= kLeastShare;
  }

  // True if a value closer to the current best was already tried in this direction and was not faster.
  bool beyond_a_measured_one(std::size_t i, std::size_t axis) const {
    for (const std::size_t k : tried_) {
      if (k == *best_ || only_change(k) != axis) continue;
      const double to_best = features_.distance(axis, k, *best_), to_i = features_.distance(axis, k, i);
      if (to_best > 0 && to_best + to_i <= features_.distance(axis, i, *best_) + 1e-9) return true;
    }
    return false;
  }

  std::span<const Candidate> all_;
  const Group& group_;
  const Strategy& strategy_;
  Features features_;
  // State of the decision that is being made; the index is the place in the group.
  std::vector<std::size_t> tried_;
  std::optional<std::size_t> best_;
};

void Playbook::decide(i64& left, Decision& decision) {
  tried_.clear();
  for (std::size_t i = 0; i < group_.size(); ++i) {
    if (at(i).status == TrialStatus::kRunning) return;  // each step depends on the one before
    if (at(i).tried) tried_.push_back(i);
  }
  best_ = fastest();
  const auto step = next();
  if (step && static_cast<i64>(tried_.size()) < strategy_.max_trials) {
    if (left <= 0) return;
    --left;
    decision.next.push_back(group_[step->candidate]);
    decision.notes.push_back("playbook: " + step->why);
    return;
  }
  rule_out_rest(all_, group_, to_string(StrategyKind::kPlaybook),
                step ? fmt::format("not tried: max_trials {} were run", strategy_.max_trials)
                : best_
                    ? fmt::format("not tried: after {} trials no single change of the fastest is left that "
                                  "promises anything",
                                  tried_.size())
                    : "not tried: nothing fits",
                decision);
}

}  // namespace

std::unique_ptr<Chooser> make_playbook(std::span<const Candidate> all, const Group& group,
                                       const Strategy& strategy) {
  return std::make_unique<Playbook>(all, group, strategy);
}

}  // namespace sweep::search
