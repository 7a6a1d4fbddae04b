// Answers of probes, by this build and by others, between the lines that shells add.
#include "orchestrator/launch/probe_answer.h"

#include <gtest/gtest.h>

namespace sweep::launch {
namespace {

TEST(ProbeAnswer, IsFoundBetweenOtherLines) {
  const auto answers = probes_in("Welcome!\n0: {\"host\": \"n1\", \"version\": \"1\"}\n[1]\nbye\n");
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_TRUE(answers[0].probe);
  EXPECT_EQ(answers[0].probe->host, "n1");
  EXPECT_FALSE(wrong_agent(answers[0], "1"));
  EXPECT_TRUE(wrong_agent(answers[0], "2"));
}

TEST(ProbeAnswer, OfAnotherBuildHasItsHostAndVersionThoughTheRestCannotBeRead) {
  const auto answers = probes_in(R"({"host": "n1", "version": "9", "gpus": 8})");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].probe);
  EXPECT_EQ(answers[0].host, "n1");
  EXPECT_EQ(answers[0].version, "9");
  EXPECT_TRUE(wrong_agent(answers[0], "1"));
  EXPECT_TRUE(wrong_agent(answers[0], "9")) << "nothing can be judged";
}

TEST(ProbeAnswer, WithoutAVersionIsWrong) {
  EXPECT_TRUE(wrong_agent(ProbeAnswer(), "1"));
}

}  // namespace
}  // namespace sweep::launch
