// Answers about results of which some have padding, as people ask for them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using nlohmann::json;

class UsefulTokens : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    const std::string csv = file("u.csv",
                                 "model,mbs,dp,nodes,tok_s_gpu,useful_fraction\n"
                                 "a,1,8,1,50,1\na,2,8,1,100,0.1\n");
    const Answer said = ask({"import", csv, "--sweep", "u", "--set", "seq_len=4096", "--set",
                             "precision=bf16", "--hardware", "h100-sxm-80gb"});
    ASSERT_EQ(said.code, kAnswered) << said.err;
  }
  json asked(const std::vector<std::string>& words) {
    const Answer said = ask(words);
    EXPECT_EQ(said.code, kAnswered) << said.err;
    return json::parse(said.out, nullptr, false);
  }
};

TEST_F(UsefulTokens, DecideUnlessAMetricIsNamed) {
  const json best = asked({"best", "--json"});
  EXPECT_EQ(best[0]["metric"], "useful_tokens_per_s_gpu");
  EXPECT_EQ(best[0]["value"], 50);
  EXPECT_EQ(asked({"best", "--json", "--metric", "tokens_per_s_gpu"})[0]["value"], 100);
  EXPECT_EQ(asked({"status", "--json"})["best"]["value"], 50);
  EXPECT_EQ(asked({"suggest", "a", "--json"})[0]["tokens_per_s_gpu"], 50);
  EXPECT_EQ(asked({"compare", "u", "u", "--transfer", "--json"})["metric"], "useful_tokens_per_s_gpu");
  const std::string csv = dir_ / "h.csv";
  EXPECT_EQ(ask({"heatmap", "-o", csv}).code, kAnswered);
  std::ifstream in(csv);
  const std::string cells{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(csv_rows(cells).at(0).contains("useful_tokens_per_s_gpu")) << cells;
}

TEST_F(UsefulTokens, AreWhatAnEpochHas) {
  const json rows = asked({"table", "max-batch", "--epoch-tokens", "800", "--json"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0]["useful_tokens_per_s"], 80);
  EXPECT_DOUBLE_EQ(rows[0]["epoch_s"], 10);
}

}  // namespace
}  // namespace sweep::cli
