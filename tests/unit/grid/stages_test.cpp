// The section `stages`: each stage keeps the changes of those above it; what it cannot mean is refused with its place.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "grid_text.h"
#include "schema/labels.h"

namespace sweep::grid {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;

const std::string kStages = kHead + "base: {hardware: h100-sxm-80gb, zero: 1}\n";

std::string stage_of(const PlanEntry& entry) {
  return label_members(entry.trial.labels).value(std::string(kStageLabel), "");
}

TEST(Stages, KeepTheChangesOfThoseAboveThem) {
  const auto all =
      expanded(kStages +
               "stages:\n  - start: {}\n  - larger batch: {micro_batch_size: 4}\n"
               "  - zero 3: {zero: 3, recompute: full}\n  - no recomputation: {recompute: none}\n");
  ASSERT_EQ(all.entries.size(), 4u);
  std::vector<std::string> names;
  std::vector<i64> batches, zeros, numbers;
  for (const PlanEntry& entry : all.entries) {
    names.push_back(stage_of(entry));
    batches.push_back(entry.trial.micro_batch_size);
    zeros.push_back(entry.trial.zero);
    numbers.push_back(label_members(entry.trial.labels).value(std::string(kStageNumber), -1));
  }
  EXPECT_THAT(names, ElementsAre("start", "larger batch", "zero 3", "no recomputation"));
  EXPECT_THAT(batches, ElementsAre(1, 4, 4, 4));
  EXPECT_THAT(zeros, ElementsAre(1, 1, 3, 3)) << "base holds until a stage changes it";
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(all.entries[2].trial.recompute, Recompute::kFull);
  EXPECT_EQ(all.entries[3].trial.recompute, Recompute::kNone);
}

TEST(Stages, AreMadeForEachCombinationOfTheGridAndReadByWhere) {
  const auto all =
      expanded(kStages +
               "grid: {seq_len: [1024, 2048]}\nstages:\n  - a: {}\n  - b: {micro_batch_size: 2}\n"
               "where: [\"stage != 'b' or seq_len == 1024\"]\n");
  EXPECT_EQ(all.admitted().size(), 3u);
  EXPECT_EQ(all.counts.dropped_where, 1u);
}

TEST(Stages, AnIncludedPointIsNone) {
  const auto all = expanded(
      kStages + "stages:\n  - a: {}\n  - b: {micro_batch_size: 2}\ninclude: [{micro_batch_size: 8}]\n");
  ASSERT_EQ(all.entries.size(), 3u);
  EXPECT_EQ(stage_of(all.entries[0]), "");
  EXPECT_EQ(stage_of(all.entries[2]), "b");
}

TEST(Stages, AModelMayChange) {
  const auto all = expanded(
      "name: t\nmodel: llama3-8b\nbase: {hardware: h100-sxm-80gb}\n"
      "stages:\n  - large: {}\n  - small: {model: gpt2}\n");
  ASSERT_EQ(all.entries.size(), 2u);
  EXPECT_EQ(all.entries[0].trial.model, "llama3-8b");
  EXPECT_EQ(all.entries[1].trial.model, "gpt2");
  EXPECT_EQ(all.entries[1].trial.spec.layers, 12);
}

TEST(Stages, WhatTheyCannotMeanIsRefused) {
  const auto refused = [](const std::string& stages) { return error_of(kStages + stages); };
  EXPECT_THAT(refused("stages: []\n"), AllOf(At(4, 1), IsError(ErrorKind::kInvalidValue, "stages")));
  EXPECT_THAT(refused("stages: [{a: {}}]\n"), AllOf(At(4, 1), IsError(ErrorKind::kInvalidValue, "stages")));
  EXPECT_THAT(refused("stages:\n  - a: {}\n  - b: {zero: 1}\n"),
              AllOf(At(6, 5), IsError(ErrorKind::kInvalidValue, "b")))
      << "it changes nothing";
  EXPECT_THAT(refused("stages:\n  - a: {}\n  - b: {zero: 2}\n  - c: {zero: 1}\n"),
              AllOf(At(7, 5), IsError(ErrorKind::kInvalidValue, "c")))
      << "it is a again";
  EXPECT_THAT(refused("stages:\n  - a: {}\n  - a: {zero: 2}\n"),
              AllOf(At(6, 5), IsError(ErrorKind::kConflict, "a")));
  EXPECT_THAT(refused("stages:\n  - a: {}\n  - {b: {zero: 2}, c: {zero: 3}}\n"),
              AllOf(At(6, 5), IsError(ErrorKind::kInvalidValue, "stages")));
  EXPECT_THAT(refused("stages:\n  - a: {}\n  - b: {zer: 2}\n"),
              AllOf(At(6, 9), IsError(ErrorKind::kUnknownName, "zer")));
  EXPECT_THAT(refused("stages:\n  - a: {}\n  - b: {zero: 7}\n"), IsError(ErrorKind::kInvalidValue, "zero"));
  EXPECT_THAT(refused("stages:\n  - a: {}\n  - b: {zero: [2, 3]}\n"), At(6, 15));
  EXPECT_THAT(refused("grid: {zero: [1, 2]}\nstages:\n  - a: {}\n  - b: {zero: 2}\n"),
              IsError(ErrorKind::kConflict, "zero"));
  EXPECT_THAT(refused("derive: {stage: dp}\nstages:\n  - a: {}\n  - b: {zero: 2}\n"),
              AllOf(At(5, 1), IsError(ErrorKind::kConflict, "stage")));
}

TEST(Stages, AnIncludedPointHasWhatBaseGivesThoughAStageChangesIt) {
  const auto all = expanded(
      "name: t\nmodel: llama3-8b\nbase: {hardware: h100-sxm-80gb, nodes: 1, gpus_per_node: 8, dp: 4, tp: 2}\n"
      "stages:\n  - a: {}\n  - b: {dp: 2, tp: 4, model: gpt2}\ninclude: [{micro_batch_size: 8}]\n");
  ASSERT_EQ(all.admitted().size(), 3u);
  EXPECT_EQ(all.entries[0].trial.micro_batch_size, 8);
  EXPECT_EQ(all.entries[0].trial.dp, 4);
  EXPECT_EQ(all.entries[0].trial.tp, 2);
  EXPECT_EQ(all.entries[0].trial.model, "llama3-8b");
}

TEST(Stages, ASizeThatIsAutoInBaseIsNotSetByAStage) {
  EXPECT_THAT(
      error_of(kHead + "base: {hardware: h100-sxm-80gb, global_batch_size: 8, micro_batch_size: auto}\n"
                       "stages:\n  - a: {}\n  - b: {micro_batch_size: 2}\n"),
      AllOf(At(6, 9), IsError(ErrorKind::kConflict, "micro_batch_size")));
}

}  // namespace
}  // namespace sweep::grid
