// What `sweep doctor` concludes from facts: pure functions of what the companions and the machine answered.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace sweep::cli {

enum class Health { kGood, kWarning, kBad };

struct Finding {
  std::string what;
  Health health = Health::kGood;
  std::string detail;  // of a warning or worse: the cause and the way out
};

// node: facts of `sweep-agent --probe` (gpus, driver, driver_cuda); rank: facts of `sweep-rank facts` (cuda,
// archs). One finding for the driver, one per kind of GPU; "no GPU" is good news for CPU trials and says so.
std::vector<Finding> judge_gpus(const nlohmann::json& node, const nlohmann::json& rank);

// free_bytes of /dev/shm and of the database's folder.
Finding judge_space(const std::string& what, double free_bytes, double needed_bytes);

}  // namespace sweep::cli
