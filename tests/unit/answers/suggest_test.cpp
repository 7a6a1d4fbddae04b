// Which configuration `suggest` calls the fastest of a place.
#include "orchestrator/answers/tables/suggest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/answers/rows.h"

namespace sweep::answers {
namespace {

std::vector<ResultRow> on_one_place(std::initializer_list<ResultRow> rows) {
  std::vector<ResultRow> out(rows);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].trial.micro_batch_size = static_cast<i64>(i) + 1;
  return out;
}

TEST(Suggest, ATrialThatWasStoppedEarlyIsNotTheFastest) {
  auto rows = on_one_place({ok_row("b", 1, 900), ok_row("a", 1, 500)});
  rows[0].metrics.steps_saved = 5;
  EXPECT_EQ(suggestions(rows).at(0).best.trial_id, "a");
}

TEST(Suggest, TheFastestIsThatByUsefulTokens) {
  const auto found = suggestions(on_one_place({useful_row("a", 900, 0.1), useful_row("b", 500, 1)}));
  EXPECT_EQ(found.at(0).best.trial_id, "b");
  const auto document = suggestions_json(found);
  EXPECT_EQ(document[0]["tokens_per_s_gpu"], 500);
  EXPECT_EQ(document[0]["useful_tokens_per_s_gpu"], 500);
  EXPECT_TRUE(found.at(0).padding);
}

TEST(Suggest, OfEqualsTheSmallerIdIsTheFastest) {
  const auto rows = on_one_place({ok_row("b", 1, 900), ok_row("a", 1, 900)});
  EXPECT_EQ(suggestions(rows).at(0).best.trial_id, "a");
}

TEST(Suggest, ALargerBatchIsOutOfMemoryFromTheSmallestThatWas) {
  const auto rows = on_one_place(
      {ok_row("a", 1, 900), bad_row("b", 1, Outcome::kOom, ""), bad_row("c", 1, Outcome::kOom, "")});
  const auto found = suggestions(rows);
  EXPECT_EQ(found.at(0).largest_batch, 1);
  EXPECT_EQ(found.at(0).batch_beyond, 2);
  EXPECT_NE(suggestions_yaml(found).find("ran up to 1, out of memory from 2\n"), std::string::npos);
  const auto document = suggestions_json(found);
  EXPECT_EQ(document[0]["out_of_memory_from_micro_batch_size"], 2);
  EXPECT_EQ(document[0]["tokens_per_s_gpu"], 900);
}

TEST(Suggest, AnAxisThatDiffersMakesAnotherConfiguration) {
  auto rows = on_one_place({ok_row("a", 1, 900), bad_row("b", 1, Outcome::kOom, ""), ok_row("c", 1, 500)});
  rows[0].trial.lora_rank = 16;
  const auto found = suggestions(rows);
  EXPECT_EQ(found.at(0).largest_batch, 1) << "trial c trains every parameter";
  EXPECT_FALSE(found.at(0).batch_beyond);
  EXPECT_NE(suggestions_yaml(found).find("\nlora_rank: 16\n"), std::string::npos) << suggestions_yaml(found);
}

TEST(Suggest, AResultThatASweepReusedCountsOnce) {
  const auto rows = on_one_place({ok_row("a", 1, 900), ok_row("b", 1, 500), ok_row("a", 1, 900)});
  EXPECT_EQ(suggestions(rows).at(0).ran, 2);
}

TEST(Suggest, AnAxisThatTheProgramDoesNotKnowIsNotSaid) {
  auto rows = on_one_place({ok_row("a", 1, 900)});
  rows[0].trial.workload = Workload::kCommand;
  rows[0].trial.labels = R"({"@axes":" hardware nodes gpus_per_node dp tp pp cp ep ","lr":0.5})";
  const auto found = suggestions(rows);
  const std::string yaml = suggestions_yaml(found);
  for (const char* key : {"micro_batch_size", "seq_len", "recompute", "workload"})
    EXPECT_EQ(yaml.find(key), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("# lr: 0.5\n"), std::string::npos) << yaml;
  const auto document = suggestions_json(found);
  for (const char* key : {"largest_micro_batch_size", "longest_seq_len"})
    EXPECT_TRUE(document[0][key].is_null()) << key;
}

TEST(Suggest, NothingIsSaidOfAPlaceWhereNothingRan) {
  EXPECT_EQ(suggestions({}).size(), 0u);
  EXPECT_EQ(suggestions({bad_row("a", 1, Outcome::kOom, "")}).size(), 0u);
}

}  // namespace
}  // namespace sweep::answers
