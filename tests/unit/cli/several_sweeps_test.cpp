// Answers from a database of several sweeps say which of them they are of.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using nlohmann::json;

class SeveralSweeps : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    bring("m");
  }
  // The same trials in each.
  void bring(const std::string& name) {
    const Answer said =
        ask({"import", file("m.csv", "model,mbs,dp,nodes,tok_s_gpu\na,1,8,1,10\na,2,8,1,20\n"), "--sweep",
             name, "--set", "seq_len=4096", "--set", "precision=bf16", "--hardware", "h100-sxm-80gb"});
    ASSERT_EQ(said.code, kAnswered) << said.err;
  }
  json asked(const std::vector<std::string>& words) {
    const Answer said = ask(words);
    EXPECT_EQ(said.code, kAnswered) << said.err;
    return json::parse(said.out, nullptr, false);
  }
};

TEST_F(SeveralSweeps, BestNamesTheSweepThatItChose) {
  const auto names_it = [&](const std::vector<std::string>& words) {
    return ask(words).out.find("sweep n") != std::string::npos;
  };
  EXPECT_EQ(ask({"best"}).out, ask({"best", "m"}).out) << "there is no other";
  bring("n");
  EXPECT_TRUE(names_it({"best"}));
  EXPECT_FALSE(names_it({"best", "n"}));
  EXPECT_EQ(asked({"best", "--json"})[0]["sweep"], "n");
  EXPECT_EQ(asked({"best", "m", "--json"})[0]["sweep"], "m");
}

TEST_F(SeveralSweeps, BestOfAConfirmationIsOfOneAllocationAndSaysSo) {
  bring("n");
  EXPECT_TRUE(asked({"best", "n", "--json"})[0]["confirms"].is_null());
  EXPECT_TRUE(asked({"best", "n", "--json"})[0]["allocations"].is_null());
  sql(R"(UPDATE sweep SET options_json = '{"confirms":"m"}' WHERE name = 'n')");
  EXPECT_EQ(asked({"best", "n", "--json"})[0]["confirms"], "m");
  EXPECT_EQ(asked({"best", "n", "--json"})[0]["allocations"], 1);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"best", "n"}, {"best", "n", "--yaml"}})
    EXPECT_NE(ask(words).out.find("`sweep confirm m`"), std::string::npos) << words.back();
  EXPECT_EQ(ask({"best", "m"}).out.find("`sweep confirm"), std::string::npos);
}

TEST_F(SeveralSweeps, StepsOfATrialNameTheSweepThatTheyAreOf) {
  bring("n");
  sql(R"(INSERT INTO step_sample(attempt, rank, repeat, step, warmup, step_ns, forward_ns, backward_ns, optimizer_ns,
                                 tokens, alloc_retries)
         SELECT final_attempt, 0, 0, 0, 0, 1000000, 0, 0, 0, 1, 0 FROM plan_entry WHERE final_attempt NOT NULL)");
  const json rows = asked({"query", "select trial from results where sweep = 'm' limit 1", "--json"});
  const std::string trial = rows[0]["trial"];
  const json steps = asked({"query", "steps", "--set", "trial=" + trial, "--json"});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0]["sweep"], "m");
  EXPECT_EQ(steps[1]["sweep"], "n");
  EXPECT_EQ(steps[0]["trial"], trial);
  EXPECT_NE(steps[0]["attempt"], steps[1]["attempt"]);
}

}  // namespace
}  // namespace sweep::cli
