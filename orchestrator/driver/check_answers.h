// The answers of `sweep selftest` and `sweep doctor` as text and as JSON (docs/json.md).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/driver/doctor_rules.h"
#include "orchestrator/driver/selftest.h"
#include "orchestrator/driver/selftest_results.h"

namespace sweep::driver {

struct StrategyCheck {
  SelfTestTrial selftest;
  std::optional<SelfTestOutcome> found;  // nullopt: there is no answer
  bool passed = false;
};
struct SelfTestAnswer {
  std::vector<StrategyCheck> strategies;
  std::string ended;    // reason why the run ended early
  bool passed() const;  // every strategy that has a trial passed
};
SelfTestAnswer selftest_answer(std::vector<SelfTestTrial>, SelfTestReport);
std::string selftest_text(const SelfTestAnswer&);
nlohmann::json selftest_json(const SelfTestAnswer&);
// The entries that this run adds to the user's file. `date`: UTC, ISO.
SelfTestResults results_of(const SelfTestAnswer&, const std::string& date);

bool healthy(std::span<const Finding>);
std::string findings_text(std::span<const Finding>);
nlohmann::json doctor_json(std::span<const Finding>, const SelfTestResults& here);

}  // namespace sweep::driver
