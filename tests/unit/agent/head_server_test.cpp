// The head agent's side of a connection, with a client that connects from another thread.
#include "worker/agent/net/head_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "schema/codec.h"
#include "schema/version.h"
#include "tests/support/descriptors.h"
#include "worker/agent/net/head_client.h"

namespace sweep::agent {
namespace {

class HeadServerTest : public ::testing::Test, protected HeadServerListener {
 protected:
  void SetUp() override { ASSERT_TRUE(server_.listen({"127.0.0.1", "lo"})); }
  // Connects as this node; the server runs until the client has its answer.
  Expected<HeadClient> join(i64 node, const std::optional<Secret>& secret) {
    Expected<HeadClient> out = fail("not tried");
    std::thread client([&] {
      out = connect_to_head(client_io_, {"127.0.0.1", server_.port(), secret, node}, 5,
                            {NodeRecord{.host = "n1"}});
      boost::asio::post(io_, [this] { done_ = true; });
    });
    for (done_ = false; !done_;) io_.run_one();
    client.join();
    return out;
  }

  boost::asio::io_context io_, client_io_;
  HeadServer server_{io_, 3, 5, *this};
  std::vector<i64> joined_, lost_;
  std::vector<NodeHello> hellos_;
  bool done_ = false;

 private:
  void node_joined(i64 node, NodeHello hello) override {
    joined_.push_back(node);
    hellos_.push_back(std::move(hello));
  }
  void node_said(i64, const AgentMessage&) override {}
  void node_lost(i64 node, const std::string&) override { lost_.push_back(node); }
};

TEST_F(HeadServerTest, ANodeThatKnowsTheSecretJoinsOnce) {
  const auto client = join(1, server_.secret());
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ(joined_, std::vector<i64>{1});
  ASSERT_TRUE(hellos_.at(0).record);
  EXPECT_EQ(hellos_[0].record->host, "n1");
  EXPECT_TRUE(server_.any_connected());
  EXPECT_FALSE(server_.all_joined());
  EXPECT_FALSE(join(1, server_.secret())) << "it has joined before";
  EXPECT_TRUE(join(2, server_.secret()));
  EXPECT_TRUE(server_.all_joined());
}

TEST_F(HeadServerTest, ANodeWhoseHelloCannotBeReadJoinsAndThatIsLogged) {
  boost::asio::ip::tcp::socket socket(client_io_);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(server_.port())});
  std::array<char, 1024> buffer{};
  FrameReader reader(4096);
  Expected<std::optional<Frame>> greeting = std::nullopt;
  while (greeting && !*greeting) {
    io_.poll();
    socket.non_blocking(true);
    boost::system::error_code none_yet;
    reader.feed({buffer.data(), socket.read_some(boost::asio::buffer(buffer), none_yet)});
    greeting = reader.next();
  }
  ASSERT_TRUE(greeting);
  const std::string theirs = text_of((*greeting)->head, "challenge"), ours = new_challenge();
  nlohmann::json said = to_json(NodeProof{ours, server_.secret().proof("node", theirs, ours), 1, kVersion});
  said["hello"] = 5;
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_st>(log)));
  boost::asio::write(socket, boost::asio::buffer(encode({said, {}})));
  while (joined_.empty()) io_.run_one();
  spdlog::set_default_logger(before);
  EXPECT_EQ(joined_, std::vector<i64>{1});
  EXPECT_FALSE(hellos_.at(0).record);
  EXPECT_NE(log.str().find("hello"), std::string::npos) << log.str();
}

TEST_F(HeadServerTest, TheLoopMayRunOnAfterTheServerIsGone) {
  boost::asio::io_context loop;
  HeadServerListener& listener = *this;
  auto server = std::make_unique<HeadServer>(loop, 2, 5, listener);
  ASSERT_TRUE(server->listen({"127.0.0.1", "lo"}));
  loop.poll();  // it waits for a caller
  server.reset();
  loop.poll();
  EXPECT_TRUE(loop.stopped());
}

// Connects, and leaves nothing but a reset connection to accept.
void connect_and_reset(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET, at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int caller = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(caller, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  const linger reset{1, 0};
  ASSERT_EQ(::setsockopt(caller, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  ::close(caller);
}

TEST_F(HeadServerTest, ACallerThatHungUpBeforeItWasAcceptedIsLoggedByItsAddress) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_st>(log)));
  for (int i = 0; i < 2; ++i) connect_and_reset(server_.port());
  while (io_.poll() > 0) {
  }
  spdlog::set_default_logger(before);
  EXPECT_NE(log.str().find("127.0.0.1"), std::string::npos) << log.str();
  EXPECT_EQ(std::ranges::count(log.str(), '\n'), 1) << "once for an address and cause: " << log.str();
}

#if SWEEP_WITHOUT_DESCRIPTORS
TEST_F(HeadServerTest, WithoutADescriptorForACallerItDoesNotSpin) {
  sockaddr_in at{};
  at.sin_family = AF_INET, at.sin_port = htons(static_cast<uint16_t>(server_.port()));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int caller = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(caller, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  {
    const testing::NoMoreDescriptors none;
    EXPECT_LT(io_.run_for(std::chrono::milliseconds(300)), 50u);
  }
  ::close(caller);
  EXPECT_TRUE(join(1, server_.secret()));
}
#endif

TEST_F(HeadServerTest, OthersAreRefused) {
  EXPECT_FALSE(join(1, Secret::random())) << "another secret";
  EXPECT_FALSE(join(3, server_.secret())) << "there is no such node";
  EXPECT_TRUE(joined_.empty());
  EXPECT_FALSE(server_.any_connected());
}

TEST_F(HeadServerTest, AConnectionThatBreaksIsReportedOnce) {
  auto client = join(2, server_.secret());
  ASSERT_TRUE(client);
  client->link.reset();  // closes the socket
  while (lost_.empty()) io_.run_one();
  EXPECT_EQ(lost_, std::vector<i64>{2});
  EXPECT_FALSE(server_.any_connected());
  server_.close_all();
  io_.run();  // nothing is left to wait for
  EXPECT_EQ(lost_.size(), 1u);
}

}  // namespace
}  // namespace sweep::agent
