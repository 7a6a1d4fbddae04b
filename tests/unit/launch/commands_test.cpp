#include "orchestrator/launch/commands.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "base/files.h"
#include "base/process.h"
#include "tests/support/descriptors.h"

namespace sweep::launch {
namespace {

CommandResult say(std::vector<std::string> argv, double limit_s = 600) {
  boost::asio::io_context io;
  Commands commands(io);
  return run_to_end(io, commands.run(std::move(argv), limit_s));
}

TEST(Commands, BothStreamsAndTheCodeComeBack) {
  const CommandResult said = say({"sh", "-c", "echo out; echo err >&2; exit 3"});
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
  const CommandResult said = say({"no-such-program-anywhere"});
  EXPECT_EQ(said.code, -1);
  EXPECT_NE(said.err.find("no-such-program-anywhere"), std::string::npos);
}

TEST(Commands, OneThatDoesNotEndIsEndedWithItsChildren) {
  CommandResult said;
  for (double limit_s = 0.5; said.out.empty() && limit_s < 100;
       limit_s *= 2)  // until the shell has come to its echo
    said = say({"sh", "-c", "sleep 1000 & echo $!; wait"}, limit_s);
  EXPECT_TRUE(said.timed_out);
  EXPECT_FALSE(said.ok());
  const Descriptor child(open_pidfd(static_cast<pid_t>(std::stol(said.out))));
  if (child.get() < 0) return;  // init has waited for it already
  pollfd ended{child.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 600'000), 1);
}

TEST(Commands, OneThatASignalEndedSaysWhich) {
  const CommandResult said = say({"sh", "-c", "kill -KILL $$"});
  EXPECT_EQ(said.code, -1);
  EXPECT_EQ(said.signal, SIGKILL);
  EXPECT_FALSE(said.ok());
}

#if SWEEP_WITHOUT_DESCRIPTORS
TEST(Commands, WithoutADescriptorLeftTheAnswerSaysSo) {
  boost::asio::io_context io;
  Commands commands(io);
  boost::asio::steady_timer there(io);  // the loop's own descriptors are
  auto answer = boost::asio::co_spawn(io, commands.run({"true"}, 30), boost::asio::use_future);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  io.run();
  ::setrlimit(RLIMIT_NOFILE, &before);
  const CommandResult out = answer.get();
  EXPECT_EQ(out.code, -1);
  EXPECT_NE(out.err.find("Too many open files"), std::string::npos) << out.err;
}
#endif

TEST(Commands, VariablesThatChangeWhatSlurmDoesAreTakenAway) {
  ::setenv("SCANCEL_INTERACTIVE", "1", 1);
  ::setenv("SLURM_CONF", "/here", 1);
  const CommandResult said = say({"env"});
  ::unsetenv("SCANCEL_INTERACTIVE");
  ::unsetenv("SLURM_CONF");
  EXPECT_EQ(said.out.find("SCANCEL_INTERACTIVE"), std::string::npos);
  EXPECT_NE(said.out.find("SLURM_CONF=/here\n"), std::string::npos);
  EXPECT_NE(said.out.find("PATH="), std::string::npos);
}

awaitable<void> wait_for_sleep(Commands& commands, std::shared_ptr<int> answers) {
  const std::vector<std::string> words{"sleep", "1000"};  // gcc 12 takes no braces beside co_await
  const CommandResult said = co_await commands.run(words, 1000);
  *answers += said.timed_out ? 1 : 2;
}

TEST(Commands, TheDestructorEndsTheCoroutinesThatWait) {
  boost::asio::io_context io;
  const auto answers = std::make_shared<int>(0);
  {
    Commands commands(io);
    start_coroutine(io, wait_for_sleep(commands, answers));
    io.poll();  // it waits
    EXPECT_EQ(answers.use_count(), 2);
  }
  io.run();
  EXPECT_EQ(*answers, 0);
  EXPECT_EQ(answers.use_count(), 1) << "nothing is left of it";
}

}  // namespace
}  // namespace sweep::launch
