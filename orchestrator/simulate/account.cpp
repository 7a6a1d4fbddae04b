#include "orchestrator/simulate/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "orchestrator/simulate/simulated_outcomes.h"
#include "schema/codec.h"

namespace sweep::simulate {
namespace {

std::string span(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

constexpr double kUnpredictedSeconds =
    SimulatedOutcomes::kUnpredictedStart + SimulatedOutcomes::kUnpredictedSteps;

struct Share {
  const char* name;
  double node_s;
  const char* meaning;
  bool held = true;  // a part of the node time that was held
};

std::vector<Share> shares(const Forecast& f) {
  const NodeTime& t = f.account.time;
  return {{"trials", t.trials, "attempts that gave an answer"},
          {"start-up", t.start_up, "agents and ranks getting ready"},
          {"lost", t.lost, "broken nodes, preemption, crashes, hangs"},
          {"idle", t.idle, "held without an attempt"},
          {"queue", std::max(0.0, f.available() - t.held()), "not held: asked for, broken, or not wanted",
           false}};
}

nlohmann::json as_json(const Assumptions& a) {
  return {{"nodes", a.nodes},
          {"spares", a.spares},
          {"jobs", a.jobs},
          {"job_nodes", a.job_nodes},
          {"job_s", a.job_s ? nlohmann::json(*a.job_s) : nullptr},
          {"gpu_hours", a.gpu_hours ? nlohmann::json(*a.gpu_hours) : nullptr},
          {"usd", a.usd ? nlohmann::json(*a.usd) : nullptr},
          {"queue_s", a.queue_s},
          {"agents_s", a.agents_s},
          {"node_mtbf_h", a.node_mtbf_h},
          {"repair_h", a.repair_h},
          {"preempted_per_h", a.preempted_per_h},
          {"oom_percent", a.oom_percent},
          {"crash_percent", a.crash_percent},
          {"hang_percent", a.hang_percent},
          {"spread", a.spread},
          {"unpredicted_s", kUnpredictedSeconds},
          {"seed", a.seed}};
}

}  // namespace

bool Forecast::every_trial_has_an_answer() const {
  const auto unanswered = [](const auto& each) { return each.second > 0 && !is_answer(each.first); };
  return end.empty() && pending == 0 && std::ranges::none_of(outcomes, unanswered);
}

std::string to_text(const Forecast& f) {
  const Account& a = f.account;
  std::string outcomes;
  for (const auto& [outcome, count] : f.outcomes)
    outcomes += fmt::format(", {} {}", count, to_string(outcome));
  if (f.pending > 0) outcomes += fmt::format(", {} pending", f.pending);
  std::string text = fmt::format("simulated, nothing was run: {} trials on {} nodes (seed {}){}\n", f.trials,
                                 f.assumed.nodes, f.assumed.seed, outcomes);
  if (!f.end.empty()) text += fmt::format("ended early: {}\n", f.end);
  if (f.unpredicted > 0)
    text += fmt::format("nothing predicts the time of {} of the trials: each is taken to need {:g} s\n",
                        f.unpredicted, kUnpredictedSeconds);
  text += fmt::format("makespan {}, efficiency {:.1f} % (trials / held node time)\n", span(f.makespan_s),
                      100 * f.efficiency());
  text += fmt::format(
      "{} attempts in {} allocations, which waited {} on average; {} nodes broke ({} allocations with them), "
      "{} "
      "allocations preempted, {} out of time\n\n",
      a.attempts, a.allocations,
      span(a.allocations > 0 ? a.waited_s / static_cast<double>(a.allocations) : 0), a.nodes_broken,
      a.allocations_broken, a.preempted, a.out_of_time);
  text += fmt::format("  {:<9} {:>11} {:>8}\n", "", "node-hours", "of held");
  const double held = a.time.held();
  for (const Share& each : shares(f)) {
    const auto share = each.held && held > 0 ? fmt::format("{:.1f} %", 100 * each.node_s / held) : "";
    text += fmt::format("  {:<9} {:>11.1f} {:>8}  {}\n", each.name, each.node_s / 3600, share, each.meaning);
  }
  return text;
}

std::string to_json(const Forecast& f) {
  nlohmann::json outcomes = nlohmann::json::object(), where = nlohmann::json::object();
  for (const auto& [outcome, count] : f.outcomes) outcomes[std::string(to_string(outcome))] = count;
  for (const Share& each : shares(f)) where[each.name] = each.node_s;
  const Account& a = f.account;
  return dump({{"simulated", true},
               {"assumptions", as_json(f.assumed)},
               {"trials", f.trials},
               {"pending", f.pending},
               {"unpredicted", f.unpredicted},
               {"outcomes", outcomes},
               {"ended_early", f.end.empty() ? nlohmann::json(nullptr) : nlohmann::json(f.end)},
               {"makespan_s", f.makespan_s},
               {"efficiency", f.efficiency()},
               {"node_s", where},
               {"available_node_s", f.available()},
               {"attempts", a.attempts},
               {"allocations", a.allocations},
               {"allocations_waited_s", a.waited_s},
               {"nodes_broken", a.nodes_broken},
               {"allocations_broken", a.allocations_broken},
               {"allocations_preempted", a.preempted},
               {"allocations_out_of_time", a.out_of_time},
               {"wall_s", f.wall_s}}) +
         "\n";
}

}  // namespace sweep::simulate
