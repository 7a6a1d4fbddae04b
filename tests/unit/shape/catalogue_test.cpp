#include "bench_kernels/shape/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/expected.h"
#include "schema/codec.h"
#include "tests/support/error_matchers.h"

namespace sweep::shape {
namespace {

TEST(Catalogue, NamesAreUniqueAndEveryModelNamesItsSource) {
  std::set<std::string> names;
  for (const NamedModel& m : all_models()) {
    EXPECT_TRUE(names.insert(m.name).second) << m.name;
    EXPECT_FALSE(m.source.empty()) << m.name;
    EXPECT_TRUE(completed(m.spec).has_value()) << m.name;
    EXPECT_EQ(*completed(m.spec), m.spec) << m.name << ": completing twice changes it";
  }
  for (const Hardware& h : all_hardware()) EXPECT_TRUE(names.insert(h.name).second) << h.name;
}

// A model that was read is written again as it was, nested members too.
TEST(Catalogue, NoMemberOfAModelIsMisspelt) {
  std::ifstream file(SWEEP_SOURCE_DIR "/bench_kernels/shape/models.json");
  for (const auto& model : nlohmann::json::parse(file)) {
    auto known = to_json(*find_model(model["name"].get<std::string>()));
    for (const char* beside : {"name", "note", "source"}) known[beside] = nullptr;
    for (const auto& [key, value] : model.items()) {
      EXPECT_TRUE(known.contains(key)) << model["name"] << ": " << key;
      if (!value.is_object() || !known.contains(key)) continue;
      for (const auto& [member, inner] : value.items())
        EXPECT_TRUE(known[key].contains(member)) << model["name"] << ": " << key << "." << member;
    }
  }
}

TEST(Catalogue, UnknownNamesSuggestTheNearest) {
  EXPECT_THAT(find_model("lama3-8b").error(),
              AllOf(IsError(ErrorKind::kUnknownName, "lama3-8b"), Suggests("llama3-8b")));
  EXPECT_THAT(find_hardware("h100-smx-80gb").error(),
              AllOf(IsError(ErrorKind::kUnknownName, "h100-smx-80gb"), Suggests("h100-sxm-80gb")));
  EXPECT_THAT(find_hardware("a100-sxm-80gb").error(), Suggests("a100-80gb"))
      << "another form of the same GPU";
  EXPECT_THAT(find_hardware("a potato").error(), IsError(ErrorKind::kUnknownName, "a potato"));
}

TEST(Catalogue, ARingLeavesANodeByTheNicsOfAllItsRanksThere) {
  const Hardware h = find_hardware("h100-sxm-80gb").value();
  EXPECT_EQ(h.ring_bandwidth(8, 1), h.intra_node_bandwidth);
  EXPECT_EQ(h.ring_bandwidth(16, 2), 8 * h.inter_node_bandwidth);
  EXPECT_EQ(h.ring_bandwidth(4, 4), h.inter_node_bandwidth) << "one rank of the group on each node";
}

TEST(Catalogue, PeaksAreDenseNotSparse) {
  EXPECT_DOUBLE_EQ(*find_hardware("a100-80gb")->peak_for(Precision::kBf16), 312e12);
  EXPECT_DOUBLE_EQ(*find_hardware("h100-sxm-80gb")->peak_for(Precision::kBf16), 989.4e12);
  EXPECT_DOUBLE_EQ(*find_hardware("l4-24gb")->peak_for(Precision::kBf16), 121e12);
  EXPECT_DOUBLE_EQ(*find_hardware("l4-24gb")->peak_for(Precision::kBf16Master), 121e12);
  EXPECT_DOUBLE_EQ(*find_hardware("l4-24gb")->peak_for(Precision::kBf16Mixed), 121e12);
  EXPECT_DOUBLE_EQ(*find_hardware("b200-180gb")->peak_for(Precision::kFp8), 4500e12);
}

TEST(Catalogue, AbsentUnitsAndPricesAreAbsentNotZero) {
  EXPECT_FALSE(find_hardware("v100-16gb")->peak_for(Precision::kBf16).has_value());
  EXPECT_FALSE(find_hardware("a100-80gb")->peak_for(Precision::kFp8).has_value());
  EXPECT_FALSE(find_hardware("cpu")->peak_for(Precision::kFp32).has_value());
  EXPECT_FALSE(find_hardware("cpu")->price.has_value());
  EXPECT_FALSE(find_hardware("h100-pcie-80gb")->price.has_value());
  EXPECT_FALSE(find_hardware("cpu")->memory_bytes.has_value());
}

TEST(Catalogue, EveryGpuHasWhatThePredictorReads) {
  for (const Hardware& h : all_hardware()) {
    EXPECT_GT(h.memory_bandwidth, 0) << h.name;
    EXPECT_GT(h.intra_node_bandwidth, 0) << h.name;
    EXPECT_GT(h.inter_node_bandwidth, 0) << h.name;
    if (h.name == "cpu") continue;
    EXPECT_TRUE(h.peak_for(Precision::kFp32).has_value()) << h.name;
    EXPECT_GT(h.memory_bytes.value_or(0), i64{15} << 30) << h.name;
    EXPECT_FALSE(h.compute_capability.empty()) << h.name;
    if (!h.price) continue;
    EXPECT_GT(h.price->usd_per_node_hour, 0) << h.name;
    EXPECT_FALSE(h.price->source.empty() || h.price->date.empty()) << h.name;
  }
}

TEST(Nearest, OnlySlipsOfThePen) {
  const std::vector<std::string> words{"seq_len", "precision", "tp"};
  EXPECT_EQ(nearest("seqlen", words), "seq_len");
  EXPECT_EQ(nearest("percision", words), "precision");
  EXPECT_EQ(nearest("tpp", words), "tp");
  EXPECT_FALSE(nearest("optimizer", words).has_value());
  EXPECT_EQ(nearest("SEQ_LEN", words), "seq_len");
  EXPECT_EQ(nearest("mbs", std::vector<std::string>{"tp", "micro_batch_size"}), "micro_batch_size");
  EXPECT_EQ(nearest("micro_batch", std::vector<std::string>{"tp", "micro_batch_size"}), "micro_batch_size");
  EXPECT_FALSE(nearest("", words).has_value());
  EXPECT_FALSE(nearest(std::string(100'000, 'x'), words).has_value());
}

ModelSpec dims(const char* family) {
  ModelSpec m;
  m.family = family;
  m.layers = 2;
  m.hidden_size = 64;
  m.heads = 4;
  m.intermediate_size = 128;
  m.vocab_size = 100;
  return m;
}

TEST(Completed, FamilyDecidesNormPositionsAndBiases) {
  const auto llama = completed(dims("llama"));
  EXPECT_TRUE(llama->rmsnorm && llama->swiglu && llama->rope && !llama->attention_bias &&
              !llama->linear_bias);
  EXPECT_EQ(llama->kv_heads, 4);
  EXPECT_EQ(llama->head_dim, 16);
  EXPECT_TRUE(completed(dims("qwen2"))->attention_bias);
  const auto gpt2 = completed(dims("gpt2"));
  EXPECT_TRUE(!gpt2->rmsnorm && !gpt2->swiglu && !gpt2->rope && gpt2->attention_bias && gpt2->linear_bias);
  EXPECT_EQ(gpt2->max_positions, 1024);
}

TEST(Completed, RefusesWithTheNumbers) {
  ModelSpec m = dims("llama");
  m.heads = 3;
  EXPECT_THAT(completed(m).error(), IsError(ErrorKind::kInvalidValue, "hidden_size"));
  m = dims("llama");
  m.kv_heads = 3;
  EXPECT_THAT(completed(m).error(), IsError(ErrorKind::kInvalidValue, "heads"));
  m = dims("llama");
  m.head_dim = 15;
  EXPECT_THAT(completed(m).error(), IsError(ErrorKind::kInvalidValue, "head_dim"));
  m = dims("lama");
  EXPECT_THAT(completed(m).error(), AllOf(IsError(ErrorKind::kUnknownName, "lama"), Suggests("llama")));
  m = dims("llama");
  m.layers = -1;
  EXPECT_THAT(completed(m).error(), IsError(ErrorKind::kInvalidValue, "layers"));
  m = dims("llama");
  m.norm_eps = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(completed(m).error(), IsError(ErrorKind::kInvalidValue, "norm_eps"));
  m = dims("gpt2");
  m.hidden_size = std::numeric_limits<i64>::max();
  m.intermediate_size = 0;
  EXPECT_FALSE(completed(m).has_value());
}

}  // namespace
}  // namespace sweep::shape
