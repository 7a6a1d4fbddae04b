#include "orchestrator/launch/commands.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <boost/asio/steady_timer.hpp>
#include <chrono>

namespace sweep::launch {
namespace {

Said say(std::vector<std::string> argv, double limit_s = 30) {
  boost::asio::io_context io;
  Commands commands(io);
  Said out;
  int answers = 0;
  commands.run(std::move(argv), limit_s, [&](const Said& said) { out = said, ++answers; });
  io.run();
  EXPECT_EQ(answers, 1);
  return out;
}

TEST(Commands, BothStreamsAndTheCodeComeBack) {
  const Said said = say({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(said.out, "out\n");
  EXPECT_EQ(said.err, "err\n");
  EXPECT_EQ(said.code, 3);
  EXPECT_FALSE(said.ok());
}

TEST(Commands, WordsAreNotReadByAShellAndStdinIsEmpty) {
  EXPECT_EQ(say({"printf", "%s|", "a b", "$(id)", "*", ""}).out, "a b|$(id)|*||");
  EXPECT_EQ(say({"cat"}).out, "");
}

TEST(Commands, LongAnswersComeWhole) {
  EXPECT_EQ(say({"head", "-c", "3000000", "/dev/zero"}).out.size(), 3000000u);
}

TEST(Commands, WhatCannotBeStartedIsAnAnswer) {
  const Said said = say({"no-such-program-anywhere"});
  EXPECT_EQ(said.code, -1);
  EXPECT_NE(said.err.find("no-such-program-anywhere"), std::string::npos);
}

TEST(Commands, OneThatDoesNotEndIsEndedWithItsChildren) {
  const Said said = say({"sh", "-c", "sleep 1000 & echo $!; wait"}, 0.5);
  EXPECT_TRUE(said.timed_out);
  EXPECT_FALSE(said.ok());
  const pid_t child = static_cast<pid_t>(std::stol(said.out));
  for (int i = 0; i < 500 && ::kill(child, 0) == 0; ++i) ::usleep(10000);  // until init has waited for it
  EXPECT_NE(::kill(child, 0), 0);
}

TEST(Commands, TheDestructorEndsWhatRunsAndCallsNobody) {
  boost::asio::io_context io;
  int answers = 0;
  {
    Commands commands(io);
    commands.run({"sleep", "1000"}, 1000, [&](const Said&) { ++answers; });
  }
  io.run_for(std::chrono::milliseconds(100));
  EXPECT_EQ(answers, 0);
}

}  // namespace
}  // namespace sweep::launch
