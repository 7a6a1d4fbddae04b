#include "worker/command/trainer_report.h"

#include <gtest/gtest.h>

namespace sweep::command {
namespace {

TrainerReport after(std::string_view text) {
  TrainerReport report;
  report.feed(text);
  return report;
}

TEST(TrainerReport, LinesMayBeCutAnywhere) {
  const std::string text =
      "{\"kind\":\"hello\"}\n{\"kind\":\"step\",\"step\":1,\"ms\":5,\"tokens\":7}\n{\"kind\":\"end\"}\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    TrainerReport report;
    report.feed(std::string_view(text).substr(0, cut));
    report.feed(std::string_view(text).substr(cut));
    ASSERT_EQ(report.steps().size(), 1u) << cut;
    EXPECT_EQ(report.steps()[0].tokens, 7);
    EXPECT_TRUE(report.has_ended());
    EXPECT_EQ(report.damaged(), 0);
  }
}

TEST(TrainerReport, WhatIsNotSaidIsAbsent) {
  const auto report = after("{\"kind\":\"step\",\"step\":1}\n");
  ASSERT_EQ(report.steps().size(), 1u);
  EXPECT_FALSE(report.steps()[0].ms);
  EXPECT_FALSE(report.steps()[0].loss);
  EXPECT_FALSE(report.memory().alloc_retries);
}

TEST(TrainerReport, WhatItSaysOfItselfIsKeptUntilItSaysMore) {
  const auto report = after(
      "{\"kind\":\"hello\",\"pid\":7,\"world\":2}\n{\"kind\":\"hello\",\"other_steps\":9}\n"
      "{\"kind\":\"hello\",\"other_steps\":-1}\n");
  EXPECT_EQ(report.identity().world, 2);
  EXPECT_EQ(report.identity().other_steps, 9);
  EXPECT_EQ(report.damaged(), 1);
}

TEST(TrainerReport, StepsMustCountUpwards) {
  const auto report = after(
      "{\"kind\":\"step\",\"step\":2}\n{\"kind\":\"step\",\"step\":2}\n{\"kind\":\"step\",\"step\":1}\n"
      "{\"kind\":\"step\",\"step\":200001}\n{\"kind\":\"step\",\"step\":3}\n");
  EXPECT_EQ(report.last_step(), 3);
  EXPECT_EQ(report.damaged(), 3);
}

TEST(TrainerReport, WrongTypesDamageTheirLineOnly) {
  for (const char* line :
       {R"({"kind":"step","step":"1"})", R"({"kind":"step","step":1,"ms":-1})",
        R"({"kind":"step","step":1.5})", R"({"kind":"step"})", R"({"kind":7})", R"([])", R"(nonsense)",
        R"({"kind":"step","step":1,"loss":"low"})", R"({"kind":"phase","phase":"lunch"})",
        R"({"kind":"phase","phase":"done"})", R"({"kind":"error","outcome":"ok"})",
        R"({"kind":"error","outcome":"oom","oom":"gpu"})", R"({"v":2,"kind":"end"})",
        R"({"kind":"memory","ooms":-1})", R"({"kind":"memory","ooms":18446744073709551615})"}) {
    const auto report = after(std::string(line) + "\n{\"kind\":\"step\",\"step\":1,\"ms\":2}\n");
    EXPECT_EQ(report.damaged(), 1) << line;
    EXPECT_EQ(report.last_step(), 1) << line;
    EXPECT_FALSE(report.has_ended()) << line;
  }
}

TEST(TrainerReport, AWholeNumberIsACountHoweverItIsWritten) {
  const auto report = after("{\"v\":1.0,\"kind\":\"step\",\"step\":1.0,\"tokens\":2.048e3}\n");
  ASSERT_EQ(report.steps().size(), 1u);
  EXPECT_EQ(report.last_step(), 1);
  EXPECT_EQ(report.steps()[0].tokens, 2048);
  EXPECT_EQ(report.damaged(), 0);
}

TEST(TrainerReport, OutOfMemoryIsThatOfTheDeviceWhereNothingElseIsSaid) {
  const auto report = after("{\"kind\":\"error\",\"outcome\":\"oom\"}\n");
  ASSERT_TRUE(report.error());
  EXPECT_EQ(report.error()->oom_kind, OomKind::kDevice);
}

TEST(TrainerReport, TheFirstErrorIsTheCause) {
  const auto report = after(
      "{\"kind\":\"error\",\"outcome\":\"oom\",\"oom\":\"device\",\"type\":\"torch.OutOfMemoryError\","
      "\"message\":\"m\","
      "\"asked_bytes\":12,\"part\":\"forward\"}\n{\"kind\":\"error\",\"outcome\":\"crash\"}\n");
  ASSERT_TRUE(report.error());
  EXPECT_EQ(report.error()->outcome, Outcome::kOom);
  EXPECT_EQ(report.error()->oom_kind, OomKind::kDevice);
  EXPECT_EQ(report.error()->asked_bytes, 12);
  EXPECT_EQ(report.error()->part, "forward");
}

TEST(TrainerReport, ALineWithoutAnEndKeepsNoMemory) {
  TrainerReport report;
  const std::string piece(1u << 20, 'x');
  for (int i = 0; i < 64; ++i) report.feed(piece);
  report.feed("\n{\"kind\":\"step\",\"step\":1}\n");
  EXPECT_EQ(report.damaged(), 1);
  EXPECT_EQ(report.last_step(), 1);
}

}  // namespace
}  // namespace sweep::command
