// Explain: everything known about one trial: what it is, what the plan decided and why, each attempt
// and its outcome with the evidence for it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/node_times.h"
#include "orchestrator/store/store.h"
#include "schema/plan_entry.h"
#include "schema/records.h"

namespace sweep::answers {

struct ExplainAttempt {
  i64 id = 0;
  State state = State::kPending;
  std::string where;             // the allocation's spool or host list
  std::optional<Result> result;  // nullopt: none yet
};

struct ExplainView {
  PlanEntry entry;
  std::vector<ExplainAttempt> attempts;  // attempts in the order they were made
  std::optional<i64> final_attempt;      // the one whose result counts; nullopt: none
  std::vector<std::string> events;       // events of the sweep that concern it
  std::string command = {};              // the lines of a workload's command
  std::vector<NodeTime> nodes = {};      // times by node, where the final attempt had several
};

// Explains the trial whose id begins with the prefix.
Expected<ExplainView> explain_view(store::Store&, i64 sweep, const std::string& id_prefix);

std::string explain(const ExplainView&, std::size_t width = 0);
// The lines of one attempt: outcome, reason, metrics, evidence. `world`: ranks of the trial.
std::string attempt_text(const ExplainAttempt&, bool is_final, i64 world);
nlohmann::json explain_json(const ExplainView&, const std::string& sweep);

struct RankStacks {
  i64 rank = 0;
  // Lines, as `py-spy dump` prints them.
  std::string text;
};
// The stacks of the rank that decides, else of the first that has some.
std::optional<RankStacks> deciding_stacks(const Evidence&);

}  // namespace sweep::answers
