// Requests that a living zygote cannot take.
#include "worker/agent/process/zygote.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <vector>

namespace sweep::agent {
namespace {

TEST(Zygote, ARequestThatDoesNotFitItsChannelFailsAloneAndAtOnce) {
  constexpr std::chrono::minutes kMost(10);  // ends a test that has failed
  boost::asio::io_context io;
  Zygote zygote(io, std::filesystem::path(SWEEP_BIN_DIR) / "fake_rank", "key/0");
  RankLaunch launch;
  launch.attempt_dir = std::string(16u << 20, 'x');
  std::vector<bool> started;
  zygote.start(launch, 1, [&](const Expected<pid_t>& pid) {
    started.push_back(pid.has_value());
    io.stop();
  });
  const pid_t pid = zygote.pid();
  ASSERT_GT(pid, 0);
  io.run_for(kMost);
  ASSERT_EQ(started, std::vector<bool>{false});
  launch.attempt_dir = "/no/such/attempt/1";
  io.restart();
  zygote.start(launch, 2, [&](const Expected<pid_t>& rank) {
    started.push_back(rank.has_value());
    io.stop();
  });
  io.run_for(kMost);
  EXPECT_EQ(started, (std::vector<bool>{false, true})) << "the same zygote forks the next rank";
  EXPECT_EQ(zygote.pid(), pid);
  zygote.stop();
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

}  // namespace
}  // namespace sweep::agent
