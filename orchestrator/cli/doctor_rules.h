// What `sweep doctor` concludes from facts: pure functions of what the companions and the machine answered.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sweep::cli {

enum class Health { kGood, kWarning, kBad };

std::string_view to_string(Health);  // ok, warning, bad

struct Finding {
  std::string what;
  Health health = Health::kGood;
  std::string detail;  // of a warning or worse: the cause and the way out
};

// node: facts of `sweep-agent --probe` (gpus, driver, driver_cuda); rank: facts of `sweep-rank facts` (cuda,
// archs). One finding for the driver, one per kind of GPU; "no GPU" is good news for CPU trials and says so.
std::vector<Finding> judge_gpus(const nlohmann::json& node, const nlohmann::json& rank);

// What a node must be to the sweep: from its `sweep-agent --probe PATH...`, asked between two instants of this
// machine's clock. Empty texts are not asked for.
struct NodeWants {
  std::string node;      // as it was asked, for people
  std::string version;   // of this program
  std::string folder;    // must be writable there
  std::string rank;      // must be a program there
  std::string hardware;  // catalogue name; its GPUs must be there
  bool shared = false;   // the folder is this machine's own, seen from there
  std::int64_t asked_unix_ns = 0, answered_unix_ns = 0;
};
std::vector<Finding> judge_node(const nlohmann::json& probe, const NodeWants&);

// Why the GPUs of a node, by its facts, are not the declared hardware, or fewer than the `needed`, and what to do; absent:
// they are, or the facts do not tell of GPUs (no NVML there): each rank then looks for itself.
std::optional<std::string> unfit_gpus(const nlohmann::json& facts, const std::string& hardware,
                                      std::int64_t needed);

// free_bytes of /dev/shm and of the database's folder.
Finding judge_space(const std::string& what, double free_bytes, double needed_bytes);

}  // namespace sweep::cli
