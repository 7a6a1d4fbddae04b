// Explain: everything known about one trial as text: what it is, what the plan decided and why, each attempt
// and its outcome with the evidence for it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/plan_entry.h"
#include "schema/records.h"

namespace sweep::answers {

struct ExplainAttempt {
  i64 id = 0;
  State state = State::kPending;
  std::string where;             // the allocation's spool or host list
  std::optional<Result> result;  // absent: none yet
};

struct ExplainView {
  PlanEntry entry;
  std::vector<ExplainAttempt> attempts;  // in the order they were made
  std::optional<i64> final_attempt;      // the one whose result counts; absent: none
  std::vector<std::string> events;       // of the sweep that concern it
  std::string command = {};              // of a workload: what it runs; lines
};

std::string explain(const ExplainView&, std::size_t width = 0);

}  // namespace sweep::answers
