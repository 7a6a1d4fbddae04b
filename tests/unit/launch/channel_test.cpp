#include "orchestrator/launch/ssh/channel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>

#include "tests/support/descriptors.h"

#if SWEEP_WITHOUT_DESCRIPTORS
namespace sweep::launch {
namespace {

// With so many descriptors beyond those that are open; the loop's own are there.
Channel::Ends ends_with(boost::asio::io_context& io, rlim_t descriptors) {
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit few{static_cast<rlim_t>(next) + descriptors, before.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Channel::Ends out;
  int calls = 0;
  std::unique_ptr<Channel> channel;
  EXPECT_NO_THROW(channel = std::make_unique<Channel>(
                      io, std::vector<std::string>{"true"}, [](std::string_view) {},
                      [&](const Channel::Ends& ends) { out = ends, ++calls; }))
      << descriptors;
  ::setrlimit(RLIMIT_NOFILE, &before);
  io.restart();
  io.run();
  EXPECT_EQ(calls, 1) << descriptors;
  return out;
}

TEST(Channel, WhereDescriptorsRunOutItSaysSoAndLeavesNoProcess) {
  boost::asio::io_context io;
  boost::asio::steady_timer there(io);
  int refused = 0;
  for (rlim_t descriptors = 0; descriptors < 16; ++descriptors) {
    const auto ends = ends_with(io, descriptors);
    if (ends.code == 0) continue;
    ++refused;
    EXPECT_NE(ends.words.find("Too many open files"), std::string::npos) << descriptors << ": " << ends.words;
  }
  EXPECT_GE(refused, 7) << "three pipes and the process's own";
  EXPECT_LT(refused, 16);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

}  // namespace
}  // namespace sweep::launch
#endif
