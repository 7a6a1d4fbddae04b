#include "orchestrator/driver/planning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/found_gpu.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/driver/calibration.h"
#include "orchestrator/driver/earlier_results.h"
#include "orchestrator/interop/recipes.h"
#include "orchestrator/plan/planner.h"
#include "orchestrator/predict/trainer_profile.h"
#include "orchestrator/search/history.h"
#include "schema/hardware_kinds.h"

namespace sweep::driver {
namespace {

// Names the profile of the trainer that a recipe's commands start.
std::string by_trainer(const predict::TrainerProfile& p, const std::string& hardware) {
  return fmt::format("{}: by the profile of the trainer, '{}'{}", hardware, p.name,
                     p.hardware == hardware ? "" : ", which is of " + p.hardware);
}

std::vector<std::string> origins_of_times(const std::vector<PlanEntry>& entries, const std::string& recipe,
                                          std::span<const shape::HardwareProfile> profiles) {
  std::set<std::string> names;
  for (const auto& entry : entries)
    if (entry.admitted && entry.predicted.step_ms) names.insert(entry.trial.hardware);
  std::vector<std::string> out;
  for (const auto& name : names) {
    const auto* trainer =
        recipe.empty() || name == "cpu" ? nullptr : predict::profile_of_trainer(recipe, name);
    if (trainer != nullptr)
      out.push_back(by_trainer(*trainer, name));
    else if (const auto* p = predict::profile_for(profiles, name))
      out.push_back(
          fmt::format("{}: by the profile '{}', measured on {} on {}", name, p->name, p->date, p->hosts));
    else if (is_mixed(name))
      out.push_back(fmt::format("{}: predicted from catalogue figures, the least of its kinds", name));
    else
      out.push_back(fmt::format(
          "{}: predicted from catalogue figures; `sweep calibrate --hardware {}` measures better ones", name,
          name));
  }
  return out;
}

// The GPUs that this build's LibTorch cannot run the built-in step on. A command brings a PyTorch of its own.
std::vector<std::string> not_run_here(const std::vector<PlanEntry>& entries) {
  std::set<std::string> names;
  for (const auto& entry : entries)
    if (entry.admitted && entry.trial.workload != Workload::kCommand) names.insert(entry.trial.hardware);
  std::vector<std::string> out;
  for (const auto& name : names)
    if (const auto* hardware = shape::known_hardware(name))
      if (auto why = shape::not_run_by_wheels(*hardware)) out.push_back(std::move(*why));
  return out;
}

plan::LeftToProgram left_to_program(const grid::Grid& grid) {
  return {!grid::sets_axis(grid, "zero"), !grid::sets_axis(grid, "precision")};
}

// How predictions take the axes that a command's program decides; empty: the grid gives them.
std::string taken_as_default(const std::vector<PlanEntry>& entries, plan::LeftToProgram left) {
  const bool commands = std::ranges::any_of(entries, [](const PlanEntry& e) {
    return e.trial.workload == Workload::kCommand && e.predicted.bytes.has_value();
  });
  std::vector<std::string> names, values;
  if (left.zero) names.emplace_back("zero"), values.push_back(fmt::format("zero as {}", Trial{}.zero));
  if (left.precision)
    names.emplace_back("precision"), values.push_back(fmt::format("precision as {}", Trial{}.precision));
  if (!commands || names.empty()) return {};
  return fmt::format(
      "the grid leaves {} to the program. Predictions take {}; memory prunes only what no choice of these "
      "fits",
      fmt::join(names, " and "), fmt::join(values, ", "));
}

}  // namespace

Expected<Planned> make_plan(const std::string& grid_file, std::uint64_t max_points, const std::string& db,
                            const Say& say, const std::optional<std::string>& suggested_by) {
  const grid::ReadOptions options{max_points, interop::built_in_recipes()};
  SWEEP_GET(auto read, grid::read_file(grid_file, options));
  if (!suggested_by) return plan_of(std::move(read), db, say);
  SWEEP_GET(auto suggested, with_suggested(std::move(read), options, *suggested_by));
  auto planned = plan_of(std::move(suggested.grid), db, say);
  if (planned) planned->suggested = std::move(suggested.said), planned->suggested_again = suggested.again;
  return planned;
}

Expected<Planned> plan_of(grid::Grid grid, const std::string& db, const Say& say) {
  constexpr std::size_t kTrialsBetweenLines = 100'000;  // takes a second or two
  Planned planned{std::move(grid), {}, {}};
  std::map<std::string, std::size_t> drops;
  auto counts = grid::expand(planned.grid, [&](PlanEntry&& entry) {
    if (const auto so_far = planned.entries.size(); so_far > 0 && so_far % kTrialsBetweenLines == 0)
      say(fmt::format("planning: {} trials so far", so_far));
    if (const auto drop = drops.find(entry.id); drop != drops.end()) {
      planned.entries[drop->second] = std::move(entry);
      return true;
    }
    if (entry.rule == "where" || entry.rule == "exclude") drops.emplace(entry.id, planned.entries.size());
    planned.entries.push_back(std::move(entry));
    return true;
  });
  if (!counts) return tl::unexpected(counts.error());
  planned.counts = *counts;
  auto profiles = stored_profiles(calibration_db());
  if (!profiles) {  // a plan needs none
    planned.times_from.push_back("hardware, by the catalogue: the stored profiles cannot be read: " +
                                 profiles.error().message);
    profiles = std::vector<shape::HardwareProfile>();
  }
  const auto predictor = predict::calibrated(*profiles, planned.grid.recipe);
  planned.left = left_to_program(planned.grid);
  if (planned.entries.size() >= kTrialsBetweenLines)
    say(fmt::format("planning: predicts memory and time of {} trials", planned.entries.size()));
  plan::decide(planned.entries, planned.grid.measure, *predictor, planned.left);
  // A database that cannot be read corrects nothing; who opens it next says why.
  planned.corrected =
      correct_times(planned.entries, planned.grid.measure, *predictor,
                    measured_trials(db, planned.grid.name).value_or(std::vector<MeasuredTrial>()));
  if (!planned.corrected.empty()) plan::set_order(planned.entries);
  if (const auto& strategy = planned.grid.strategy; strategy && strategy->is_grid_with_history())
    search::smaller_first(planned.entries);
  for (auto& origin : origins_of_times(planned.entries, planned.grid.recipe, *profiles))
    planned.times_from.push_back(std::move(origin));
  planned.notes = not_run_here(planned.entries);
  if (auto note = taken_as_default(planned.entries, planned.left); !note.empty())
    planned.notes.push_back(std::move(note));
  return planned;
}

void prune_beyond(Planned& planned, const plan::Resources& here) {
  plan::prune_beyond(planned.entries, here, planned.left);
}

double predicted_gpu_hours(const std::vector<PlanEntry>& entries) {
  double hours = 0;
  for (const auto& entry : entries)
    if (entry.admitted && entry.predicted.seconds)
      hours += *entry.predicted.seconds / 3600 * static_cast<double>(entry.trial.world());
  return hours;
}

std::optional<double> predicted_usd(const std::vector<PlanEntry>& entries,
                                    const std::map<std::string, double>& usd_per_node_hour) {
  std::map<std::string, double> node_hours;
  for (const auto& entry : entries)
    if (entry.admitted && entry.predicted.seconds)
      node_hours[entry.trial.hardware] +=
          *entry.predicted.seconds / 3600 * static_cast<double>(entry.trial.nodes);
  if (node_hours.empty()) return std::nullopt;
  double usd = 0;
  for (const auto& [name, hours] : node_hours) {
    const auto own = usd_per_node_hour.find(name);
    const shape::Hardware* hardware = shape::known_hardware(name);
    if (own == usd_per_node_hour.end() && (!hardware || !hardware->price)) return std::nullopt;
    usd += hours * (own != usd_per_node_hour.end() ? own->second : hardware->price->usd_per_node_hour);
  }
  return usd;
}

Expected<double> gpu_hours_for(double usd, const std::vector<PlanEntry>& entries,
                               const std::map<std::string, double>& usd_per_node_hour, bool whole_node) {
  double highest = 0;  // highest price of a GPU-hour
  for (const auto& entry : entries) {
    const shape::Hardware* hardware = shape::known_hardware(entry.trial.hardware);
    if (!entry.admitted || !hardware) continue;
    const auto own = usd_per_node_hour.find(hardware->name);
    if (own == usd_per_node_hour.end() && !hardware->price)
      return fail(
          fmt::format("no price is known of {}: name one in the site profile (prices), or give --gpu-hours",
                      hardware->name));
    const double node = own != usd_per_node_hour.end() ? own->second : hardware->price->usd_per_node_hour;
    const i64 gpus = whole_node ? hardware->gpus_per_node : entry.trial.gpus_per_node;
    highest = std::max(highest, node / static_cast<double>(gpus));
  }
  if (highest <= 0) return fail("nothing of it would be run, so that no price is known");
  return usd / highest;
}

std::vector<std::string> prices_of(const std::vector<PlanEntry>& entries,
                                   const std::map<std::string, double>& usd_per_node_hour) {
  std::map<std::string, double> used;
  for (const auto& entry : entries) {
    if (!entry.admitted || !entry.predicted.seconds) continue;
    const std::string& name = entry.trial.hardware;
    const auto own = usd_per_node_hour.find(name);
    const shape::Hardware* hardware = shape::known_hardware(name);
    if (own != usd_per_node_hour.end())
      used.emplace(name, own->second);
    else if (hardware && hardware->price)
      used.emplace(name, hardware->price->usd_per_node_hour);
  }
  std::vector<std::string> out;
  for (const auto& [name, usd] : used) out.push_back(answers::price_sentence(name, usd, answers::today()));
  return out;
}

std::string summary(const Planned& planned) {
  std::map<std::string, i64> rules;
  i64 admitted = 0, unsupported = 0;
  for (const auto& entry : planned.entries) {
    if (entry.admitted)
      ++admitted;
    else if (entry.verdict == Outcome::kUnsupported)
      ++unsupported;
    else
      ++rules[entry.rule];
  }
  std::string by_rule;
  for (const auto& [rule, count] : rules)
    by_rule += fmt::format("{}{} {}", by_rule.empty() ? " (" : ", ", rule, count);
  if (!by_rule.empty()) by_rule += ")";
  std::string text = fmt::format("{} {}: {} admitted, {} pruned{}", planned.entries.size(),
                                 planned.entries.size() == 1 ? "trial" : "trials", admitted,
                                 static_cast<i64>(planned.entries.size()) - admitted - unsupported, by_rule);
  if (unsupported > 0) text += fmt::format(", {} unsupported", unsupported);
  const auto dropped = planned.counts.dropped_where + planned.counts.dropped_exclude;
  const auto listed = static_cast<std::uint64_t>(rules["where"] + rules["exclude"]);
  if (dropped > listed) text += fmt::format("; {} more points dropped by where or exclude", dropped - listed);
  if (planned.counts.duplicates > 0) text += fmt::format("; {} duplicates merged", planned.counts.duplicates);
  return text;
}

}  // namespace sweep::driver
