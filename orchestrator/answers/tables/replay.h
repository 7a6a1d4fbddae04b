// Replay lists the trials that a strategy would have run of configurations that are measured already, in its order.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/predict/trainer_profile.h"
#include "schema/imported_row.h"
#include "schema/strategy.h"

namespace sweep::answers {

struct ReplayedTrial {
  const Trial* trial = nullptr;
  i64 number = 0;       // counted from 1 within its model, nodes and sequence length
  std::size_t row = 0;  // its line in the file
  std::optional<double> predicted_rate{};
  double rate = 0;   // measured tokens per second and GPU; 0: it did not end ok
  double share = 0;  // share of the best rate of its model, nodes and sequence length; 0: none ended ok
};
// Rows without an answer are left out. `rows` must outlive the answer.
std::vector<ReplayedTrial> replayed(std::span<const ConfigRow> rows, const predict::TrainerProfile&,
                                    const shape::Hardware&, const Strategy&);
std::string replayed_csv(std::span<const ReplayedTrial>);
nlohmann::json replayed_json(std::span<const ReplayedTrial>);

}  // namespace sweep::answers
