// The words of a plan: its trials with their predictions and rehearsals, what is pruned and why, what lies near its
// memory limit, and one trial's memory by pipeline stage and part.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/answers/fields.h"
#include "schema/outcome.h"
#include "schema/plan_entry.h"

namespace sweep::answers {

// The result of a configuration's newest rehearsal.
struct Rehearsed {
  Outcome outcome = Outcome::kOk;
  std::optional<i64> allocated_bytes, reserved_bytes;  // bytes of the rank with most; nullopt: not reached
};
using RehearsedTrials = std::map<std::string, Rehearsed, std::less<>>;  // key: trial id
// The trials of all rehearsals in the database; empty if there is no such file.
Expected<RehearsedTrials> rehearsed_in(const std::string& db);

struct PlanView {
  const std::vector<PlanEntry>& entries;  // entries in run order
  RehearsedTrials rehearsed;
  std::string sweep;  // the grid's name
};
// Every trial with what varies, the prediction and, where there is one, its rehearsal.
Expected<Table> plan_table(const PlanView&);
nlohmann::json plan_entry_json(const PlanView&, const PlanEntry&);
// "  12  divisibility  e.g. ...": pruned trials by rule, with the first reason of each.
std::string pruned_text(const PlanView&);
// "rehearsed: 4 of 6 admitted trials (3 ok, 1 oom); ..."; empty: none.
std::string rehearsed_summary(const PlanView&);
// The sums over admitted trials.
std::string plan_total(const PlanView&, double gpu_hours, std::optional<double> usd);

// The margin, how many trials lie near their limit, and how many of these were measured by dry runs; empty: no limit.
std::string memory_summary(const std::vector<PlanEntry>&, double margin, std::size_t near,
                           std::size_t measured);
// A table of the trial whose id begins so.
Expected<std::string> memory_text(const std::vector<PlanEntry>&, const std::string& id, std::size_t width);

}  // namespace sweep::answers
