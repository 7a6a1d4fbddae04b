// Products of strategies against one rank, at up to 8 ranks: every sound pair in one of them, triples and larger ones.
// A trial that the step refuses must say why; one that it takes must give the same loss, gradients and
// parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench_kernels/shape/parallel_dims.h"
#include "bench_kernels/step/train_step.h"
#include "tests/parity/parity_table.h"

namespace sweep::testing {
namespace {

constexpr int kProductSteps = 2;
constexpr i64 kMostRanks = 8;
constexpr std::size_t kMostTogether = 4;  // strategies of a product that stands for its pairs
constexpr i64 kRanksTogether = 4;         // its ranks, unless its first pair alone needs more

// One strategy, as what it changes. Strategies of one kind exclude each other.
struct Strategy {
  const char* name;
  const char* kind;
  void (*apply)(Trial&);
  bool in_pairs_alone = false;  // rounding decides its updates: the distances allowed are those of pairs
};

const Strategy kStrategies[] = {
    {"dp 2", "dp", [](Trial& t) { t.dp = 2; }},
    {"tp 2", "tp", [](Trial& t) { t.tp = 2; }},
    {"tp 2 + sp", "tp", [](Trial& t) { t.tp = 2, t.sp = true; }},
    {"tp 2 + sp + overlap", "tp", [](Trial& t) { t.tp = 2, t.sp = t.tp_overlap = true; }},
    {"pp 2", "pp", [](Trial& t) { t.pp = 2; }},
    {"pp 2 gpipe", "pp", [](Trial& t) { t.pp = 2, t.schedule = Schedule::kGpipe; }},
    {"pp 2 x 2 chunks", "pp", [](Trial& t) { t.pp = 2, t.schedule = Schedule::kInterleaved, t.vpp = 2; }},
    {"cp 2", "cp", [](Trial& t) { t.cp = 2; }},
    {"cp 2 all-to-all", "cp", [](Trial& t) { t.cp = 2, t.cp_comm_type = CpCommType::kAllToAll; }},
    {"ep 2", "ep",
     [](Trial& t) {
       t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
       t.ep = 2, t.routing = Routing::kLearned;
     }},
    {"zero 1", "zero", [](Trial& t) { t.zero = 1; }},
    {"zero 2", "zero", [](Trial& t) { t.zero = 2; }},
    {"zero 3", "zero", [](Trial& t) { t.zero = 3; }},
    {"recompute full", "recompute", [](Trial& t) { t.recompute = Recompute::kFull; }},
    {"recompute selective", "recompute", [](Trial& t) { t.recompute = Recompute::kSelective; }},
    {"offloaded activations", "activations", [](Trial& t) { t.activation_offload = true; }},
    {"offloaded optimizer", "offload", [](Trial& t) { t.offload = Offload::kOptimizer; }},
    {"tied embeddings", "model",
     [](Trial& t) { t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true; }},
    {"norms of heads", "model", [](Trial& t) { t.spec.family = "qwen3"; }},
    {"windows by layer, norms after halves", "model", windows_by_layer},
    {"clip", "clip", [](Trial& t) { t.grad_clip = true; }},
    {"odd vocabulary, tied", "model",
     [](Trial& t) {
       t.spec.family = "qwen2", t.spec.attention_bias = t.spec.tie_embeddings = true, t.spec.vocab_size = 61;
     }},
    {"lora", "trained", [](Trial& t) { t.lora_rank = 3, t.lora_targets = LoraTargets::kAttention; }},
    {"quantized base", "trained",
     [](Trial& t) {
       t.lora_rank = 3, t.lora_targets = LoraTargets::kAttention, t.quantize_base = QuantizeBase::kNf4;
       t.spec.hidden_size = t.spec.intermediate_size = 128, t.spec.head_dim = 32;
     }},
    {"padded vocabulary", "vocabulary", [](Trial& t) { t.spec.vocab_size = 59, t.vocab_multiple = 3; }},
    {"packed documents", "documents", [](Trial& t) { t.packing = true, t.lengths = "uniform 2 9"; }},
    {"padded documents", "documents", [](Trial& t) { t.lengths = "uniform 2 16"; }},
    {"latent attention", "model",
     [](Trial& t) {
       t.spec.family = "deepseek_v3", t.spec.kv_lora_rank = 12, t.spec.q_lora_rank = 20,
       t.spec.rope_head_dim = 4;
       t.spec.v_head_dim = 6, t.spec.experts = 4, t.spec.experts_per_token = 2, t.spec.shared_experts = 1;
       t.spec.dense_layers = 1, t.spec.dense_intermediate_size = 40;
     }},
    {"pp 2, 3 + 1 layers", "pp", [](Trial& t) { t.pp = 2, t.stage_layers = "3 1"; }},
    {"zero 3 gathered after blocks", "zero",
     [](Trial& t) { t.zero = 3, t.backward_prefetch = BackwardPrefetch::kPost; }},
    {"paged AdamW", "optimizer", [](Trial& t) { t.optimizer = OptimizerKind::kPagedAdamw; }},
    {"8-bit AdamW", "optimizer", [](Trial& t) { t.optimizer = OptimizerKind::kAdamw8bit; }, true},
    {"Adafactor", "optimizer", [](Trial& t) { t.optimizer = OptimizerKind::kAdafactor; }, true},
    {"SGD", "optimizer", [](Trial& t) { t.optimizer = OptimizerKind::kSgd; }},
    {"dp 4, ep 2 in shard sets of 2", "ep",
     [](Trial& t) {
       t.spec.family = "mixtral", t.spec.experts = 4, t.spec.experts_per_token = 2;
       t.dp = 4, t.ep = 2, t.dp_shard = 2, t.routing = Routing::kLearned;
       if (t.zero == 0) t.zero = 2;
     }},
};
constexpr std::size_t kNumber = std::size(kStrategies);

struct Product {
  std::string name;
  Trial trial;
};

using Members = std::vector<std::size_t>;

// Nothing when two are of one kind, the ranks are too many, or there is nothing to shard or to exchange.
std::optional<Product> product_of(const Members& members) {
  Product product{"", tiny_trial()};
  std::set<std::string> kinds;
  for (const std::size_t i : members) {
    if (!kinds.insert(kStrategies[i].kind).second) return std::nullopt;
    kStrategies[i].apply(product.trial);
    product.name += (product.name.empty() ? "" : ", ") + std::string(kStrategies[i].name);
  }
  if (kinds.contains("ep") && kinds.contains("model")) return std::nullopt;  // two models
  Trial& t = product.trial;
  t = with_degrees(t, t.dp, t.tp, t.pp, t.cp, t.ep);
  const bool shards = t.dp * t.cp > 1;
  if (t.world() > kMostRanks || (t.zero > 0 && !shards) || (t.ep > 1 && !shards)) return std::nullopt;
  return product;
}

bool can_run(const std::optional<Product>& product) {
  return product && !step::unsupported(product->trial, c10::DeviceType::CPU);
}

// The pair and, one after the other, the strategy that brings most pairs which no product has yet.
Members grown(const Members& pair, const std::set<Members>& open) {
  const i64 most_ranks = std::max(product_of(pair)->trial.world(), kRanksTogether);
  Members members = pair;
  for (const std::size_t i : pair)
    if (kStrategies[i].in_pairs_alone) return pair;
  while (members.size() < kMostTogether) {
    Members best;
    std::ptrdiff_t most = 0;
    for (std::size_t i = 0; i < kNumber; ++i) {
      const auto brings = std::count_if(members.begin(), members.end(), [&](std::size_t other) {
        return open.contains({std::min(i, other), std::max(i, other)});
      });
      if (brings <= most || kStrategies[i].in_pairs_alone) continue;
      Members with = members;
      with.insert(std::upper_bound(with.begin(), with.end(), i), i);
      const auto product = product_of(with);
      if (can_run(product) && product->trial.world() <= most_ranks) most = brings, best = with;
    }
    if (best.empty()) break;
    members = best;
  }
  return members;
}

// Products that have each pair of the set.
std::vector<Members> products_of(std::set<Members> open) {
  std::vector<Members> products;
  while (!open.empty()) {
    products.push_back(grown(*open.begin(), open));
    const Members& members = products.back();
    for (std::size_t a = 0; a < members.size(); ++a)
      for (std::size_t b = a + 1; b < members.size(); ++b) open.erase({members[a], members[b]});
  }
  return products;
}

class Products : public ::testing::Test {
 protected:
  // True: it was run. What the step does not take must be refused with a sentence.
  bool check(const Members& members) {
    const auto product = product_of(members);
    if (!product) return false;
    EXPECT_TRUE(shape::ParallelDims::make(product->trial).has_value()) << product->name;
    if (const auto sentence = step::unsupported(product->trial, c10::DeviceType::CPU)) {
      std::printf("| %s: unsupported: %s\n", product->name.c_str(), sentence->c_str());
      return false;
    }
    table_.expect_equal(product->name, product->trial);
    return true;
  }
  ParityTable table_{kProductSteps};
};

// What the step does not take must be refused with a sentence. A product stands for its pairs; with SWEEP_EVERY_PAIR each is
// run alone, which also says which pair of a product that differs is the culprit.
TEST_F(Products, EverySoundPair) {
  std::set<Members> pairs;
  for (std::size_t a = 0; a < kNumber; ++a)
    for (std::size_t b = a + 1; b < kNumber; ++b)
      if (can_run(product_of({a, b})))
        pairs.insert({a, b});
      else
        check({a, b});
  EXPECT_GE(pairs.size(), 400u);
  const bool alone = std::getenv("SWEEP_EVERY_PAIR") != nullptr;
  const auto products = alone ? std::vector<Members>(pairs.begin(), pairs.end()) : products_of(pairs);
  for (const Members& members : products) EXPECT_TRUE(check(members)) << members.size();
  std::printf("%zu pairs in %zu products\n", pairs.size(), products.size());
}

// A sample of the triples (SWEEP_EVERY_TRIPLE: one in so many), then some of four and more.
TEST_F(Products, TriplesAndLarger) {
  const char* given = std::getenv("SWEEP_EVERY_TRIPLE");
  const std::size_t every = given ? std::stoul(given) : 80;
  int run = 0;
  std::size_t number = 0;
  for (std::size_t a = 0; a < kNumber; ++a)
    for (std::size_t b = a + 1; b < kNumber; ++b)
      for (std::size_t c = b + 1; c < kNumber; ++c)
        if (product_of({a, b, c}) && number++ % every == 0) run += check({a, b, c}) ? 1 : 0;
  const std::vector<Members> larger{{0, 2, 4, 12},         {0, 2, 7, 12},
                                    {2, 4, 7, 13},         {0, 4, 7, 12, 18},
                                    {0, 3, 6, 12, 13},     {0, 1, 9, 11},
                                    {0, 4, 9, 12},         {7, 9, 4, 10},
                                    {0, 2, 9, 12, 18},     {0, 2, 4, 12, 14, 15, 17, 18},
                                    {0, 2, 4, 10, 18, 19}, {0, 1, 4, 12, 18, 21},
                                    {1, 7, 11, 21},        {0, 2, 4, 12, 13, 15, 16, 18, 20},
                                    {0, 2, 7, 11, 18, 20}, {0, 1, 6, 19, 20},
                                    {0, 2, 4, 12, 13, 22}, {0, 2, 4, 12, 14, 20, 22},
                                    {1, 7, 12, 14, 23}};
  for (const auto& members : larger) run += check(members) ? 1 : 0;
  EXPECT_GE(run, 40);
}

}  // namespace
}  // namespace sweep::testing
