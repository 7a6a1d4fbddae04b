// The ranks' store: what the map answers and when, and a client that reaches it through a real socket.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <thread>

#include "runtime/store_client.h"
#include "tests/support/descriptors.h"
#include "tests/support/temporary_folder.h"
#include "worker/agent/net/rendezvous_server.h"
#include "worker/agent/net/rendezvous_store.h"

namespace sweep::agent {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong(600'000);  // ends a test that has failed

TEST(RendezvousStore, AWaitIsAnsweredWhenTheLastKeyComes) {
  std::vector<std::pair<i64, Frame>> answers;
  RendezvousStore map([&](i64 client, Frame answer) { answers.emplace_back(client, std::move(answer)); });
  map.request(1, {{{"id", 5}, {"op", "wait"}, {"keys", {"a", "b"}}}, ""});
  map.request(2, {{{"id", 1}, {"op", "set"}, {"keys", {"a"}}}, "x"});
  ASSERT_EQ(answers.size(), 1u);  // the answer to the set alone
  map.request(2, {{{"id", 2}, {"op", "set"}, {"keys", {"b"}}}, "y"});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[2].first, 1);
  EXPECT_EQ(answers[2].second.head["id"], 5);
}

TEST(RendezvousStore, RefusesWhatItDoesNotUnderstandAndWhatItCannotHold) {
  std::vector<Frame> answers;
  RendezvousStore map([&](i64, Frame answer) { answers.push_back(std::move(answer)); }, 100);
  for (const auto& head :
       {nlohmann::json{{"op", 1}, {"keys", {"a"}}}, nlohmann::json{{"op", "get"}, {"keys", "a"}},
        nlohmann::json{{"op", "get"}, {"keys", {"a", "b"}}}, nlohmann::json{{"op", "fly"}, {"keys", {"a"}}},
        nlohmann::json{{"op", "set"}, {"keys", {std::string(5000, 'k')}}}, nlohmann::json::object()})
    map.request(1, {head, ""});
  map.request(1, {{{"op", "set"}, {"keys", {"a"}}}, std::string(101, 'x')});
  ASSERT_EQ(answers.size(), 7u);
  for (const Frame& answer : answers) EXPECT_TRUE(answer.head.contains("error")) << answer.head;
}

class StoreOverSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto deep = folder_ / std::string(120, 'd');  // longer than a socket address holds
    std::filesystem::create_directories(deep);
    auto door = RendezvousServer::open(io_, deep / "store",
                                       [this](i64 client, Frame asked) { map_.request(client, asked); });
    ASSERT_TRUE(door) << door.error().message;
    door_ = std::move(*door);
    agent_ = std::thread([this] {
      const auto keep = boost::asio::make_work_guard(io_);
      io_.run();
    });
  }
  void TearDown() override {
    io_.stop();
    agent_.join();
    door_.reset();
  }
  StoreClient client() {
    auto connected = StoreClient::connect(door_->socket());
    EXPECT_TRUE(connected) << connected.error().message;
    return std::move(*connected);
  }

  const TemporaryFolder folder_;
  boost::asio::io_context io_;
  RendezvousStore map_{[this](i64 client, Frame answer) { door_->answer(client, answer); }};
  std::unique_ptr<RendezvousServer> door_;
  std::thread agent_;
};

#if SWEEP_WITHOUT_DESCRIPTORS
TEST_F(StoreOverSocket, WithoutADescriptorForARankItDoesNotSpin) {
  boost::asio::io_context io;
  auto door = RendezvousServer::open(io, folder_ / "other", [](i64, const Frame&) {});
  ASSERT_TRUE(door) << door.error().message;
  const int rank = unix_socket(folder_ / "other", false);
  ASSERT_GE(rank, 0);
  {
    const testing::NoMoreDescriptors none;
    EXPECT_LT(io.run_for(milliseconds(300)), 50u);
  }
  door->reset();
  io.run_for(milliseconds(300));  // the loop may run on after the server is gone
  ::close(rank);
}
#endif

TEST_F(StoreOverSocket, KeepsValuesCountsAndCompares) {
  auto one = client(), other = client();
  const std::string bytes("\0binary\xff", 8);
  ASSERT_TRUE(one.set("key", bytes, kLong));
  EXPECT_EQ(other.get("key", kLong).value(), bytes);
  EXPECT_EQ(one.add("sum", 5, kLong).value(), 5);
  EXPECT_EQ(other.add("sum", -7, kLong).value(), -2);
  EXPECT_TRUE(one.check({"key", "sum"}, kLong).value());
  EXPECT_FALSE(one.check({"key", "none"}, kLong).value());
  EXPECT_EQ(one.count(kLong).value(), 2);
  EXPECT_EQ(one.compare_set("key", "wrong", "new", kLong).value(), bytes);
  EXPECT_EQ(one.compare_set("key", bytes, "new", kLong).value(), "new");
  EXPECT_EQ(one.compare_set("fresh", "expected", "new", kLong).value(), "expected");
  EXPECT_EQ(one.compare_set("fresh", "", "new", kLong).value(), "new");
  EXPECT_TRUE(one.remove("key", kLong).value());
  EXPECT_FALSE(one.remove("key", kLong).value());
}

TEST_F(StoreOverSocket, AGetWaitsForItsKey) {
  std::thread late([this] { ASSERT_TRUE(client().set("late", "here", kLong)); });
  EXPECT_EQ(client().get("late", kLong).value(), "here");
  late.join();
}

TEST_F(StoreOverSocket, AClientThatTimedOutGoesOn) {
  auto one = client();
  EXPECT_FALSE(one.get("never", milliseconds(1)));
  ASSERT_TRUE(client().set("never", "after all", kLong));  // answers the old request
  ASSERT_TRUE(one.set("mine", "1", kLong));
  EXPECT_EQ(one.get("mine", kLong).value(), "1");
}

}  // namespace
}  // namespace sweep::agent
