// The parallel strategies of the training step, the smallest trial that tests each, and where the project's
// own tests have passed. `sweep selftest`, `sweep doctor` and docs/parallelism.md use this one table.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/trial.h"

namespace sweep::driver {

// The transport between ranks.
enum class Backend { kShm, kGloo, kNcclNode, kNcclNodes };
inline constexpr std::size_t kBackends = 4;
inline constexpr std::array<const char*, kBackends> kBackendNames = {"shm", "gloo", "nccl", "nccl-nodes"};
inline constexpr std::array<const char*, kBackends> kBackendTitles = {
    "CPU, shared memory", "CPU, Gloo", "NCCL, one node", "NCCL, several nodes"};
Backend backend_of(const Trial&);

struct Strategy {
  std::string_view name;   // name in selftest's rows
  std::string_view title;  // name for people
  // When the project's tests last passed there, an ISO date; empty: never.
  std::array<std::string_view, kBackends> tested;
};
std::span<const Strategy> all_strategies();

// Relative distances that a precision allows (docs/grid.md, "Model states"); fp32: 1e-5 of each, 1e-4 on a GPU.
struct Tolerance {
  double loss = 1e-5, gradient = 1e-5, value = 1e-5;
};
Tolerance tolerance_of(const Trial&);

// The machines on which strategies are tested.
struct SelfTestSetup {
  std::string hardware = "cpu";
  CommBackend backend = CommBackend::kAuto;
  i64 nodes = 1, ranks_per_node = 4;
};
struct SelfTestTrial {
  std::string strategy;        // its name
  std::optional<Trial> trial;  // nullopt: it cannot be tested there
  std::string why;             // why there is no trial, a sentence
};
// One for each strategy, in the table's order.
std::vector<SelfTestTrial> selftest_trials(const SelfTestSetup&);

}  // namespace sweep::driver
