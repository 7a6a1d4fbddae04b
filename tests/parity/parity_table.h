// ParityTable: strategies against the plain single-rank run, one row each, printed as the test goes: the
// largest relative distances of loss, gradients and parameters over steps and tensors.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "schema/codec.h"
#include "tests/parity/layouts.h"

namespace sweep::testing {

class ParityTable {
 public:
  explicit ParityTable(int steps) : steps_(steps) {
    std::printf("| %-36s | loss    | gradient | parameter |\n|%.38s|---------|----------|-----------|\n",
                "strategy", "------------------------------------------------");
  }
  // The trial on its ranks against the same model and global batch on one.
  void expect_equal(const std::string& name, const Trial& trial) {
    const WholeRun ranks = run_layout(trial, steps_);
    const bool blocks = trial.optimizer == OptimizerKind::kAdamw8bit;
    // Copies on the ranks of a tensor group share blocks of 8-bit moments with weights that differ by rank (docs/grid.md).
    if (!blocks || trial.tp == 1) {
      EXPECT_EQ(ranks.faults, std::vector<std::string>{}) << name;
    }
    const Distance d = row(name, ranks, alone(trial));
    // Shards have other blocks than whole tensors; a bias, which starts at zero, is the sum of its updates alone.
    EXPECT_LT(d.loss, blocks ? 1e-4 : 1e-5) << name;
    // Adapters get lora_check.py's tolerance: gradients before a normalized key are small differences of large numbers.
    EXPECT_LT(d.gradient, blocks ? 1e-2 : trial.lora_rank > 0 ? 1e-4 : 1e-5) << name << ": " << d.worst;
    // Adafactor divides by the size of a gradient, also where that is rounding alone (biases of keys). The largest
    // distance is 9.6e-5 on one processor and 1.02e-4 on another, whose vector units LibTorch uses otherwise.
    const double rounding = trial.optimizer == OptimizerKind::kAdafactor ? 3e-4 : 1e-5;
    EXPECT_LT(d.value, blocks ? 3e-2 : rounding) << name;
  }

  // What is printed of a run.
  static Distance row(const std::string& name, const WholeRun& run, const WholeRun& reference) {
    const Distance d = distance(run, reference);
    std::printf("| %-36s | %.1e | %.1e  | %.1e   |\n", name.c_str(), d.loss, d.gradient, d.value);
    std::fflush(stdout);
    return d;
  }
  // The same model and global batch on one rank.
  const WholeRun& alone(Trial trial) {
    Trial one = with_degrees(trial, 1, 1, 1, 1);
    one.micro_batch_size = one.global_batch_size, one.grad_accum = 1;
    const Trial plain;  // without the axes that say how, not what, is computed
    one.sp = plain.sp, one.tp_overlap = plain.tp_overlap, one.cp_comm_type = plain.cp_comm_type;
    one.schedule = plain.schedule, one.vpp = plain.vpp, one.stage_layers = plain.stage_layers;
    one.zero = plain.zero, one.dp_shard = plain.dp_shard, one.backward_prefetch = plain.backward_prefetch;
    one.recompute = plain.recompute, one.recompute_every = plain.recompute_every;
    one.vocab_multiple = plain.vocab_multiple;
    one.offload = plain.offload, one.activation_offload = plain.activation_offload;
    auto& run = references_[dump(to_json(one))];
    if (run.losses.empty()) run = run_layout(one, steps_);
    EXPECT_EQ(run.faults, std::vector<std::string>{});
    return run;
  }

 private:
  int steps_;
  std::map<std::string, WholeRun> references_;
};

}  // namespace sweep::testing
