// The results of `sweep selftest` on the user's machines: which strategy passed on which backend, and when.
// They are a file in the user's state folder; a later run replaces the entries that it ran again and no
// others.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/expected.h"
#include "orchestrator/driver/strategies.h"

namespace sweep::driver {

struct SelfTestResult {
  std::string date;  // UTC, ISO
  bool passed = false;
  std::string where;  // hosts it ran on
  std::string build;
};
using SelfTestResults = std::map<std::pair<std::string, std::string>, SelfTestResult>;  // strategy, backend

// An absent file holds none.
Expected<SelfTestResults> read_selftest_results(const std::filesystem::path& file);
Expected<void> add_selftest_results(const std::filesystem::path& file, const SelfTestResults& found);

// The table strategy x backend: when the project's tests passed, and what was found here.
std::string strategy_table(const SelfTestResults& here);

}  // namespace sweep::driver
