// Weights that forked ranks read from a file: the numbers that were written, whatever the ranks had in between.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/weights_file.h"
#include "bench_kernels/shape/around_step.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/layouts.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

struct Loaded {
  i64 bytes = 0, of_first = 0, most_on_host = 0;
};

// Each rank checks its own tensors.
Loaded load(const Trial& trial) {
  const auto ranks = on_ranks(trial, [&](step::TrainStep& step, int rank) {
    step.run();
    std::vector<at::Tensor> before;
    for (const auto& t : step.tensors()) before.push_back(t.value.clone());
    parallel::WeightsFile weights(
        step.states(),
        {.kind = trial.weights_load, .form = trial.weights_file, .first = rank == 0, .folder = "/dev/shm"});
    weights.write();
    i64 overwritten = 0;
    for (const auto* state : step.states())
      state->pieces().kept_weights([&](const parallel::Piece& piece) {
        at::Tensor(piece.values).fill_(7);
        overwritten += piece.values.numel();
      });
    require(overwritten > 0, "weights to load");
    require(!step.tensors()[0].value.equal(before[0]), "weights are gone before they are loaded");
    weights.load();
    std::size_t i = 0;
    for (const auto& t : step.tensors()) require(t.value.equal(before[i++]), t.name + " is what was written");
    return std::vector<double>{static_cast<double>(weights.bytes()),
                               static_cast<double>(weights.host_bytes())};
  });
  Loaded loaded;
  loaded.of_first = static_cast<i64>(ranks[0][0]);
  for (const auto& rank : ranks) {
    loaded.bytes += static_cast<i64>(rank[0]);
    loaded.most_on_host = std::max(loaded.most_on_host, static_cast<i64>(rank[1]));
  }
  return loaded;
}

TEST(WeightsLoad, RanksHaveTheNumbersOfTheFileAndReadTheBytesOfThePlan) {
  const Trial two = with_degrees(tiny_trial(), 2, 1, 1, 1);
  std::vector<Trial> trials{
      two, two, two, with_degrees(tiny_trial(), 1, 1, 1, 2), with_degrees(tiny_trial(), 4, 1, 1, 1), two};
  trials[1].zero = 3, trials[1].precision = Precision::kBf16Master;
  trials[2].zero = 2, trials[2].precision = Precision::kBf16Mixed;
  trials[3].zero = 3;
  trials[4].zero = 3, trials[4].dp_shard = 2;
  trials[5].zero = 3, trials[5].lora_rank = 4;
  trials.push_back(trials[1]), trials.back().offload = Offload::kParameters;
  for (Trial quantized : {two, trials[1], trials[2], trials[3], trials[4]}) {
    quantized.lora_rank = 4, quantized.quantize_base = QuantizeBase::kNf4;
    quantized.spec.hidden_size = quantized.spec.intermediate_size = 128, quantized.spec.head_dim = 32;
    for (const WeightsFileForm form : {WeightsFileForm::kPlain, WeightsFileForm::kQuantized})
      trials.push_back(quantized), trials.back().weights_file = form;
  }
  for (const std::size_t like : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {
    Trial experts = trials[like];
    experts.lora_rank = 4, experts.lora_targets = LoraTargets::kAttention;
    experts.quantize_base = QuantizeBase::kNf4, experts.weights_file = WeightsFileForm::kQuantized;
    experts.spec.hidden_size = experts.spec.intermediate_size = 128, experts.spec.head_dim = 32;
    experts.spec.family = "mixtral", experts.spec.experts = 4, experts.spec.experts_per_token = 2;
    trials.push_back(experts);
    trials.push_back(experts), trials.back().weights_file = WeightsFileForm::kPlain;
  }
  for (std::size_t i = 0; i < trials.size(); ++i)
    for (const WeightsLoad kind : {WeightsLoad::kRank0, WeightsLoad::kSharded}) {
      SCOPED_TRACE("trial " + std::to_string(i) + " " + std::string(to_string(kind)));
      Trial t = trials[i];
      t.weights_load = kind;
      ASSERT_EQ(shape::quantized_base_objection(t), std::nullopt);
      const Loaded loaded = load(t);
      EXPECT_EQ(loaded.bytes, shape::load_bytes(t));
      EXPECT_EQ(loaded.most_on_host, kind == WeightsLoad::kRank0 ? loaded.bytes : 0);
      EXPECT_EQ(loaded.of_first == loaded.bytes, kind == WeightsLoad::kRank0);
    }
}

}  // namespace
}  // namespace sweep::testing
