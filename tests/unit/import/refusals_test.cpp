// Rows that contradict themselves or each other, and what is taken instead.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orchestrator/import/import.h"
#include "schema/codec.h"
#include "tests/support/error_matchers.h"

namespace sweep::imports {
namespace {

Expected<Imported> read_with(std::string_view text, std::vector<std::string> map = {},
                             std::vector<std::string> more = {}) {
  Options options;
  options.shown_as = "f.csv", options.map = std::move(map);
  options.set = {"hardware=h100-sxm-80gb", "seq_len=4096", "precision=bf16"};
  options.set.insert(options.set.end(), more.begin(), more.end());
  return imports::read(text, options);
}
Error refused(std::string_view text, std::vector<std::string> map = {}, std::vector<std::string> more = {}) {
  return error_in(read_with(text, std::move(map), std::move(more)));
}
Imported taken(std::string_view text, std::vector<std::string> map = {}, std::vector<std::string> more = {}) {
  auto read = read_with(text, std::move(map), std::move(more));
  if (!read) throw std::runtime_error(read.error().message);
  return std::move(*read);
}

TEST(ImportRefusals, RowsThatDifferByALabelAlone) {
  const std::string head = "model,mbs,fabric,tok_s_gpu\n";
  EXPECT_THAT(refused(head + "m,1,ib,5\nm,1,eth,6\n", {"fabric=label:net"}),
              AllOf(At(3), IsError(ErrorKind::kConflict, "fabric")));
  EXPECT_EQ(taken(head + "m,1,ib,5\nm,1,ib,6\nm,2,eth,6\n", {"fabric=label:net"}).rows.size(), 3u)
      << "measured again, and another configuration";
  EXPECT_EQ(taken(head + "m,1,ib,5\nm,1,eth,6\n", {"fabric=-"}).rows.size(), 2u);
}

TEST(ImportRefusals, RowsThatDifferByTheModelsNameAlone) {
  Options options;
  options.shown_as = "f.csv", options.models = {"a=llama3-8b", "b=llama3-8b"};
  options.set = {"hardware=h100-sxm-80gb", "seq_len=4096", "precision=bf16"};
  EXPECT_THAT(error_in(imports::read("model,mbs,tok_s_gpu\na,1,5\nb,1,6\n", options)),
              AllOf(At(3), IsError(ErrorKind::kConflict, "model")));
}

TEST(ImportDimensions, AreReadFromColumnsAndTellConfigurationsApart) {
  const std::string head = "model,layers,width,heads,mbs,t\n";
  const std::vector<std::string> map = {"width=hidden_size", "t=step_ms:s"},
                                 rest = {"vocab_size=51200", "family=gpt2", "max_positions=4096"};
  const Imported read = taken(head + "mt,24,1024,16,1,1\nmt,24,2048,16,1,2\n", map, rest);
  EXPECT_NE(read.rows.at(0).entry.id, read.rows.at(1).entry.id);
  EXPECT_THAT(read.notes, ::testing::Not(::testing::Contains(::testing::HasSubstr("dimensions"))));
  const ModelSpec& spec = read.rows[1].entry.trial.spec;
  EXPECT_EQ(std::tuple(spec.family, spec.layers, spec.hidden_size, spec.head_dim, spec.vocab_size),
            std::tuple("gpt2", 24, 2048, 128, 51200));
  EXPECT_THAT(refused(head + "mt,24,1000,16,1,1\n", map, rest), At(2)) << "1000 over 16 heads";
  EXPECT_THAT(refused("model,layers,num_layers,mbs,tok_s_gpu\nmt,1,1,1,1\n"),
              IsError(ErrorKind::kConflict, "num_layers"));
  EXPECT_THAT(refused("model,layers,mbs,tok_s_gpu\nmt,1,1,1\n", {}, {"layers=2"}),
              IsError(ErrorKind::kConflict, "layers"));
}

TEST(ImportDimensions, AllOfThemComeBackFromOneCell) {
  Trial ran;
  ran.model = "mine", ran.spec.layers = 3, ran.spec.hidden_size = 64, ran.spec.heads = ran.spec.kv_heads = 4;
  ran.spec.head_dim = 16, ran.spec.intermediate_size = 128, ran.spec.vocab_size = 100;
  std::string cell = dump(to_json(ran.spec));
  for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, "\"");
  const std::string head = "model,model_dimensions,mbs,tok_s_gpu\n";
  EXPECT_EQ(taken(head + "mine,\"" + cell + "\",1,5\n").rows.at(0).entry.trial.spec, ran.spec);
  EXPECT_THAT(refused(head + "mine,{,1,5\n"), At(2));
}

TEST(ImportRefusals, FewerGpusThanRanks) {
  const std::string head = "model,mbs,dp,tp,nodes,gpus_per_node,tok_s_gpu\n";
  EXPECT_THAT(refused(head + "m,1,8,8,1,8,5\n"),
              AllOf(At(2), IsError(ErrorKind::kConflict, "gpus_per_node")));
  EXPECT_THAT(refused("model,mbs,dp,tok_s_gpu\nm,1,64,5\n", {}, {"nodes=1", "gpus_per_node=8"}),
              AllOf(At(2), IsError(ErrorKind::kConflict, "gpus_per_node")));
  EXPECT_TRUE(read_with(head + "m,1,4,1,1,8,5\n")) << "half a node";
}

TEST(ImportRefusals, APrunedRowKeepsTheLayoutThatItStates) {
  const Imported read = taken(
      "model,mbs,dp,tp,nodes,gpus_per_node,grad_accum,global_batch_size,outcome\nm,1,8,8,1,8,1,7,pruned\n");
  ASSERT_EQ(read.rows.size(), 1u);
  EXPECT_FALSE(read.rows[0].entry.admitted);
  EXPECT_EQ(read.rows[0].entry.trial.tp, 8);
}

TEST(ImportRefusals, RatesThatContradictEachOther) {
  const std::string head = "model,mbs,dp,tokens_per_s,tokens_per_s_gpu,step_ms\n";
  EXPECT_THAT(refused(head + "m,1,8,80000,5000,\n"),
              AllOf(At(2), IsError(ErrorKind::kConflict, "tokens_per_s_gpu")));
  EXPECT_THAT(refused(head + "m,1,8,80000,,100\n"), AllOf(At(2), IsError(ErrorKind::kConflict, "step_ms")));
  EXPECT_THAT(refused(head + "m,1,8,,5000,100\n"), AllOf(At(2), IsError(ErrorKind::kConflict, "step_ms")));
  EXPECT_TRUE(read_with(head + "m,1,8,327680,41000,100\n")) << "rounded";
  const std::string command = "model,mbs,dp,workload,tokens_per_s,step_ms\n";
  EXPECT_TRUE(read_with(command + "m,1,8,command,80000,100\n")) << "a command's step has its own tokens";
}

TEST(ImportRefusals, AnIntervalThatDoesNotHoldItsMedian) {
  const std::string head = "model,mbs,step_ms,step_ms_ci_low,step_ms_ci_high\n";
  EXPECT_THAT(refused(head + "m,1,500,600,700\n"),
              AllOf(At(2), IsError(ErrorKind::kConflict, "step_ms_ci_low")));
  EXPECT_THAT(refused(head + "m,1,500,300,400\n"),
              AllOf(At(2), IsError(ErrorKind::kConflict, "step_ms_ci_high")));
  EXPECT_TRUE(read_with(head + "m,1,500,500,500\n"));
}

TEST(ImportRefusals, AShareAboveOne) {
  for (const char* column : {"mfu", "useful_fraction", "bubble"}) {
    EXPECT_THAT(refused(fmt::format("model,mbs,{}\nm,1,42.5\n", column)),
                AllOf(At(2), IsError(ErrorKind::kInvalidValue, column)));
    EXPECT_TRUE(read_with(fmt::format("model,mbs,{}\nm,1,1\n", column)));
  }
  EXPECT_TRUE(read_with("model,mbs,b\nm,1,42.5\n", {"b=bubble:%"}));
}

TEST(ImportRefusals, LengthsThatNobodyReads) {
  const std::string head = "model,mbs,lengths,tok_s_gpu\n";
  EXPECT_THAT(refused(head + "m,1,long ones,5\n"),
              AllOf(At(2), IsError(ErrorKind::kInvalidValue, "lengths")));
  EXPECT_EQ(taken(head + "m,1,uniform  1   9,5\n").rows.at(0).entry.trial.lengths, "uniform 1 9");
}

TEST(ImportRefusals, LabelsThatNoCommandCouldName) {
  for (const char* label : {"tp", "step_ms", "outcome", "@axes", "a,b", "layers"})
    EXPECT_THAT(refused("model,mbs,x,tok_s_gpu\nm,1,1,5\n", {fmt::format("x=label:{}", label)}),
                AllOf(At(1), IsError(ErrorKind::kInvalidValue, "x")))
        << label;
}

TEST(ImportRows, APeakAloneIsAFigure) {
  for (const char* column : {"peak_allocated_bytes", "peak_reserved_bytes", "mem_gb"})
    EXPECT_EQ(taken(fmt::format("model,mbs,{}\nm,1,50\n", column)).rows.at(0).result->outcome, Outcome::kOk);
}

TEST(ImportRows, OnesWithoutAnAnswerNameTheirConfiguration) {
  const Imported read = taken("model,mbs,status,tok_s_gpu\nm,1,ok,5\nm,1,pending,\n");
  ASSERT_EQ(read.unanswered.size(), 1u);
  EXPECT_EQ(read.unanswered[0].trial, read.rows.at(0).entry.id);
  EXPECT_EQ(read.unanswered[0].source, "f.csv:3");
}

}  // namespace
}  // namespace sweep::imports
