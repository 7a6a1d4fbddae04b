// The answers of selftest and doctor: which strategy passed, what is said of the others, and the documents.
#include "orchestrator/driver/check_answers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep::driver {
namespace {

SelfTestTrial selftest_of(const std::string& name, i64 layers) {
  Trial trial;
  trial.model = "tiny", trial.spec.layers = layers;
  return {name, trial, ""};
}

SelfTestOutcome equal_to_one_rank() {
  SelfTestOutcome out;
  out.outcome = Outcome::kOk, out.bytes_exact = true, out.hosts = "here";
  return out;
}

// Four strategies: passed, with a wrong sum, without an answer, and without a trial.
class CheckAnswersTest : public ::testing::Test {
 protected:
  CheckAnswersTest() {
    const std::vector<SelfTestTrial> asked{selftest_of("dp", 1),
                                           selftest_of("tp", 2),
                                           selftest_of("pp", 3),
                                           {"cp", std::nullopt, "it needs two ranks"}};
    SelfTestReport report;
    report.why = "interrupted";
    report.outcomes[trial_id(*asked[0].trial)] = equal_to_one_rank();
    auto& wrong = report.outcomes[trial_id(*asked[1].trial)] = equal_to_one_rank();
    wrong.gradient = 0.5, wrong.worst = "layer 1";
    answer_ = selftest_answer(asked, report);
  }
  SelfTestAnswer answer_;
};

TEST_F(CheckAnswersTest, SelftestNamesWhatEachStrategyShowed) {
  EXPECT_FALSE(answer_.passed());
  const auto rows = selftest_json(answer_)["strategies"];
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["result"], "passed");
  EXPECT_EQ(rows[0]["why"], "");
  EXPECT_EQ(rows[0]["backend"], "shm");
  EXPECT_EQ(rows[1]["result"], "failed");
  EXPECT_EQ(rows[1]["gradient"], 0.5);
  EXPECT_EQ(rows[2]["result"], "failed");
  EXPECT_EQ(rows[2]["why"], "interrupted");
  EXPECT_FALSE(rows[2].contains("gradient"));
  EXPECT_EQ(rows[3]["result"], "not run");
  EXPECT_EQ(rows[3]["why"], "it needs two ranks");
  EXPECT_FALSE(rows[3].contains("trial"));
  answer_.strategies.resize(1);
  EXPECT_TRUE(answer_.passed());
}

TEST_F(CheckAnswersTest, OnlyStrategiesThatAnsweredAreKept) {
  const auto kept = results_of(answer_, "2026-01-31");
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_TRUE(kept.at({"dp", "shm"}).passed);
  EXPECT_FALSE(kept.at({"tp", "shm"}).passed);
  EXPECT_EQ(kept.at({"tp", "shm"}).date, "2026-01-31");
}

TEST_F(CheckAnswersTest, DoctorIsHealthyUntilAFindingIsBad) {
  std::vector<Finding> findings{{"programs", Health::kGood, "there"}, {"space", Health::kWarning, "little"}};
  EXPECT_TRUE(healthy(findings));
  findings.push_back({"GPU", Health::kBad, "no driver"});
  EXPECT_FALSE(healthy(findings));
  const auto document = doctor_json(findings, results_of(answer_, "2026-01-31"));
  EXPECT_EQ(document["healthy"], false);
  EXPECT_EQ(document["findings"][2]["health"], "bad");
  std::size_t told = 0;
  for (const auto& each : document["strategies"]) {
    if (each["here"].is_null()) continue;
    ++told;
    EXPECT_EQ(each["here"], each["strategy"] == "dp" ? "passed" : "failed") << each;
    EXPECT_EQ(each["here_date"], "2026-01-31") << each;
  }
  EXPECT_EQ(told, 2u) << document["strategies"];
}

}  // namespace
}  // namespace sweep::driver
