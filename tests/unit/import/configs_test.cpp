#include "orchestrator/import/configs.h"

#include <gtest/gtest.h>

#include "tests/support/error_matchers.h"

namespace sweep::imports {
namespace {

Expected<Configs> read(const std::string& text) {
  return read_configs(text, {"f.csv", "h100-sxm-80gb", {}});
}

void expect_refused(const std::string& text, const std::vector<std::string>& words) {
  const auto c = read(text);
  ASSERT_FALSE(c) << text;
  for (const auto& word : words)
    EXPECT_NE(c.error().message.find(word), std::string::npos) << c.error().message;
}

TEST(Configs, WhatIsNotStatedHasSensibleDefaults) {
  const auto c = must(read("model,nodes,tp\nllama3-8b,2,4\n"));
  const Trial& t = c.rows.at(0).trial;
  EXPECT_EQ(t.dp, 4);
  EXPECT_EQ(t.gpus_per_node, 8);
  EXPECT_EQ(t.seq_len, 4096);
  EXPECT_EQ(t.precision, Precision::kBf16);
  EXPECT_TRUE(t.sp);
  EXPECT_FALSE(c.rows[0].outcome);
}

TEST(Configs, AMisspeltColumnIsNamedAndTwoForOneAxisAreRefused) {
  const auto c = must(read("model,micro_batch_siz,remark\nllama3-8b,4,fine\n"));
  ASSERT_EQ(c.notes.size(), 1u);
  EXPECT_NE(c.notes[0].find("'micro_batch_size'"), std::string::npos);
  const auto both = read("model,mbs,micro_batch_size\nllama3-8b,1,2\n");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().kind, ErrorKind::kConflict);
}

TEST(Configs, DimensionsOfTheRowAreTheModel) {
  const auto c = must(read(
      "model,layers,hidden_size,heads,kv_heads,intermediate_size,vocab_size,tie_embeddings,gpus,pp,mbs,gas\n"
      "mine,28,3072,32,8,8192,131072,True,16,2,4,8\n"));
  const Trial& t = c.rows.at(0).trial;
  EXPECT_EQ(t.spec.layers, 28);
  EXPECT_EQ(t.spec.head_dim, 96);
  EXPECT_EQ(t.spec.kv_heads, 8);
  EXPECT_TRUE(t.spec.tie_embeddings);
  EXPECT_EQ(t.nodes, 2);
  EXPECT_EQ(t.dp, 8);
  EXPECT_EQ(t.grad_accum, 8);
}

TEST(Configs, DimensionsThatARowLeavesOutAreThoseOfTheNamedModel) {
  const auto c =
      must(read("model,nodes,layers,hidden_size,heads,kv_heads,tie_embeddings\n"
                "llama3-8b,1,16,,,,\nllama3-8b,1,,2048,,,true\n1B,1,,,16,,\nllama3-8b,1,,,,,\n"));
  const auto spec = [&](std::size_t row) { return c.rows.at(row).trial.spec; };
  EXPECT_EQ(spec(0).layers, 16);
  EXPECT_EQ(spec(0).hidden_size, 4096);
  EXPECT_EQ(spec(0).kv_heads, 8);
  EXPECT_EQ(spec(1).layers, 32);
  EXPECT_EQ(spec(1).head_dim, 64);  // 2048 / 32: follows the row's dimensions
  EXPECT_TRUE(spec(1).tie_embeddings);
  EXPECT_EQ(spec(2).kv_heads, 16);  // the number of heads of the named model
  EXPECT_EQ(spec(3).layers, 32);
}

TEST(Configs, OfAnotherFamilyTheRowSaysAllDimensions) {
  const auto c = must(read("model,family,layers,hidden_size,heads,vocab_size\nllama3-8b,gpt2,4,64,4,100\n"));
  EXPECT_EQ(c.rows.at(0).trial.spec.intermediate_size, 256);
  expect_refused("model,family,layers\nllama3-8b,gpt2,4\n", {"f.csv:2", "hidden_size"});
}

TEST(Configs, MeasuredCellsAreRead) {
  const auto c = must(
      read("model,nodes,dp,status,tok_s_gpu,mem_gb,note\n1B,1,8,ok,100,50.2,\"a, b\"\n1B,1,8,failed,,,\n"));
  EXPECT_EQ(c.rows[0].outcome, Outcome::kOk);
  EXPECT_DOUBLE_EQ(c.rows[0].reported_bytes, 50.2e9);
  EXPECT_DOUBLE_EQ(c.rows[0].tokens_per_s_gpu, 100);
  EXPECT_EQ(c.rows[0].cells.at(6), "a, b");
  EXPECT_NE(c.rows[1].outcome, Outcome::kOk);
}

TEST(Configs, ABadRowIsNamedByFileLineAndColumn) {
  expect_refused("model,nodes,tp\n1B,1,8\n1B,1,x\n", {"f.csv:3", "'tp'", "'x'"});
  expect_refused("model,nodes\n1X,1\n", {"f.csv:2", "'model'", "1X"});
  expect_refused("model,nodes,dp,tp\n1B,1,8,8\n", {"f.csv:2", "'nodes'"});
  expect_refused("model,gpus,dp,tp\n1B,8,3,2\n", {"f.csv:2", "'gpus'"});
  expect_refused("model,nodes\n1B\n", {"f.csv:2", "1 fields"});
  expect_refused("nodes\n1\n", {"f.csv:2", "model"});
  expect_refused("layers,hidden_size,heads,intermediate_size,vocab_size\n2,100,3,8,8\n",
                 {"f.csv:2", "heads"});
  expect_refused("model,nodes,micro_batch_size\n1B,1,0\n", {"f.csv:2", "micro_batch_size"});
  expect_refused("", {"f.csv", "empty"});
}

}  // namespace
}  // namespace sweep::imports
