#include "orchestrator/search/groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "orchestrator/search/labels.h"
#include "orchestrator/search/sizes.h"
#include "schema/codec.h"

namespace sweep::search {
namespace {

std::vector<Group> by_labels(std::span<const Candidate> all, const Group& group,
                             const std::set<std::string>& axes) {
  if (axes.empty()) return {group};
  std::map<std::string, Group> found;
  for (const std::size_t i : group) {
    auto labels = labels_of(*all[i].trial);
    std::erase_if(labels, [&](const auto& label) { return !axes.contains(label.first); });
    found[dump(nlohmann::json(labels))].push_back(i);
  }
  std::vector<Group> out;
  for (auto& [key, part] : found) out.push_back(std::move(part));
  return out;
}

// Layouts with the one of grad_accum and global_batch_size that they keep. The command of a workload holds the
// micro-batch, or the model, and is left out: its axes are labels.
std::vector<Group> layouts_keeping(std::span<const Candidate> all, bool batch,
                                   const std::set<std::string>& axes) {
  std::map<std::string, Group> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Trial t = *all[i].trial;
    t.micro_batch_size = 1, t.program.clear();
    (batch ? t.grad_accum : t.global_batch_size) = 1;
    found[trial_id(t)].push_back(i);
  }
  std::vector<Group> out;
  for (const auto& [key, group] : found)
    for (auto& part : by_labels(all, group, axes)) out.push_back(std::move(part));
  return out;
}

}  // namespace

std::vector<Group> questions(std::span<const Candidate> all) {
  std::map<std::tuple<std::string, std::string, i64>, Group> found;
  for (std::size_t i = 0; i < all.size(); ++i)
    found[{all[i].trial->model, all[i].trial->hardware, all[i].trial->seq_len}].push_back(i);
  std::vector<Group> out;
  for (auto& [key, group] : found) out.push_back(std::move(group));
  return out;
}

std::vector<Group> layouts(std::span<const Candidate> all) {
  const auto axes = own_axes(all);
  auto out = layouts_keeping(all, true, axes);
  if (auto other = layouts_keeping(all, false, axes); other.size() < out.size()) out = std::move(other);
  for (auto& group : out)
    std::ranges::stable_sort(group, {}, [&](std::size_t i) { return all[i].trial->micro_batch_size; });
  std::ranges::sort(out);
  return out;
}

std::vector<Group> settings_of_models(std::span<const Candidate> all) {
  std::map<std::string, Group> found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Trial t = *all[i].trial;
    t.model.clear(), t.spec = {}, t.program.clear();
    found[trial_id(t)].push_back(i);
  }
  const auto axes = own_axes(all);
  std::vector<Group> out;
  for (const auto& [key, group] : found)
    for (auto& part : by_labels(all, group, axes)) out.push_back(std::move(part));
  for (auto& group : out)
    std::ranges::stable_sort(group, {}, [&](std::size_t i) { return parameters_of(all[i]); });
  std::ranges::sort(out);
  return out;
}

void rule_out_rest(std::span<const Candidate> all, const Group& group, std::string_view rule,
                   const std::string& reason, Decision& decision) {
  for (const std::size_t i : group)
    if (all[i].status == TrialStatus::kWaiting) decision.ruled_out.push_back({i, std::string(rule), reason});
}

}  // namespace sweep::search
