// The server's answers, over real sockets: the token, the methods, the Host, long headers, silence, many
// connections.
#include "orchestrator/serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <thread>

namespace sweep::serve {
namespace {

using boost::asio::ip::tcp;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::size_t kLarge = 64 << 20;

class Serve : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }
  void TearDown() override { stop(); }
  void start(Limits limits) {
    io_ = std::make_unique<boost::asio::io_context>();
    const Site site = [this](std::string_view name) -> Expected<Document> {
      asked_.emplace_back(name);
      if (name == "broken") return fail("the database is gone");
      if (name == "large")
        return Document{"text/plain", std::make_shared<const std::string>(kLarge, 'x'), ""};
      if (!name.empty() && name != "data.json") return Document{};
      return Document{"application/json", std::make_shared<const std::string>(name.empty() ? "page" : "{}"),
                      "7"};
    };
    auto server = Server::listen(*io_, 0, site, limits);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] { io_->run(); });
  }
  void stop() {
    io_->stop();
    if (thread_.joinable()) thread_.join();
    server_.reset();
    io_.reset();
  }
  std::string path() const {
    const std::string address = server_->address();
    return address.substr(address.find('/', 7));
  }
  tcp::socket connect() {
    tcp::socket socket(client_);
    socket.connect({boost::asio::ip::address_v4::loopback(), static_cast<unsigned short>(server_->port())});
    return socket;
  }
  // All that comes until the server closes.
  static std::string rest(tcp::socket& socket) {
    std::string out;
    boost::system::error_code error;
    boost::asio::read(socket, boost::asio::dynamic_buffer(out), error);
    return out;
  }
  std::string raw(const std::string& text) {
    auto socket = connect();
    boost::system::error_code ignored;
    boost::asio::write(socket, boost::asio::buffer(text), ignored);
    return rest(socket);
  }
  std::string ask(const std::string& line, const std::string& host = "127.0.0.1",
                  const std::string& more = "") {
    return raw(line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + more + "\r\n");
  }

  boost::asio::io_context client_;
  std::unique_ptr<boost::asio::io_context> io_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::vector<std::string> asked_;
};

TEST_F(Serve, TheWholeAddressGetsThePage) {
  const auto page = ask("GET " + path());
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(page, HasSubstr("\r\n\r\npage"));
  EXPECT_THAT(page, HasSubstr("Cache-Control: no-store"));
  EXPECT_THAT(page, Not(HasSubstr("Access-Control")));
  EXPECT_THAT(ask("GET " + path() + "data.json?x=1"), HasSubstr("\r\n\r\n{}"));
  EXPECT_THAT(ask("GET " + path() + "nothing"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask("GET " + path() + "broken"), HasSubstr("the database is gone"));
}

TEST_F(Serve, OfAKnownVersionOnlyThatItStillHolds) {
  const auto same = ask("GET " + path() + "data.json", "127.0.0.1", "If-None-Match: \"7\"\r\n");
  EXPECT_THAT(same, StartsWith("HTTP/1.1 304"));
  EXPECT_THAT(same, ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(ask("GET " + path() + "data.json", "127.0.0.1", "If-None-Match: \"6\"\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(Serve, AnotherTokenReachesNothing) {
  std::string wrong = path();
  wrong[5] = wrong[5] == '0' ? '1' : '0';
  for (const std::string& target :
       {wrong, std::string("/"), path().substr(0, 9) + "/", std::string("//"), path().substr(1), "/" + path(),
        std::string("*"), path().substr(0, path().size() - 1)})
    EXPECT_THAT(ask("GET " + target),
                ::testing::AnyOf(StartsWith("HTTP/1.1 404"), StartsWith("HTTP/1.1 400")))
        << target;
  EXPECT_TRUE(asked_.empty());
}

TEST_F(Serve, NothingButGetAndHead) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"})
    EXPECT_THAT(ask(std::string(method) + " " + path()), StartsWith("HTTP/1.1 405")) << method;
  const auto post =
      ask("POST " + path(), "localhost", "Content-Length: 300000\r\n\r\n" + std::string(300000, 'x'));
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(post, HasSubstr("Allow: GET, HEAD"));
  EXPECT_THAT(ask("GET " + path(), "localhost", "Content-Length: 3\r\n\r\nabc"), StartsWith("HTTP/1.1 400"));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(Serve, AnotherHostIsNotServed) {
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80",
                           "127.0.0.1:", "localhost:80a", "localhost:123456789", ""})
    EXPECT_THAT(ask("GET " + path(), host), StartsWith("HTTP/1.1 421")) << host;
  EXPECT_THAT(raw("GET " + path() + " HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 421"));
  EXPECT_TRUE(asked_.empty());
  for (const char* host : {"localhost", "localhost:8080", "[::1]:9", "127.0.0.1:65535"})
    EXPECT_THAT(ask("GET " + path(), host), StartsWith("HTTP/1.1 200")) << host;
}

TEST_F(Serve, LongHeadersAndNoHttpAreRefused) {
  EXPECT_THAT(ask("GET " + path(), "localhost", "X: " + std::string(100'000, 'x') + "\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask("GET /" + std::string(20'000, 'x')), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(raw("\x16\x03\x01 not http at all\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(raw(std::string("GET /\0 HTTP/1.1\r\n\r\n", 19)), StartsWith("HTTP/1.1 400"));
}

TEST_F(Serve, ASilentConnectionIsClosed) {
  stop();
  Limits limits;
  limits.silence = std::chrono::milliseconds(100);
  start(limits);
  auto silent = connect();
  EXPECT_EQ(rest(silent), "");
  auto half = connect();
  boost::asio::write(half, boost::asio::buffer(std::string("GET / HTT")));
  EXPECT_EQ(rest(half), "");
  std::string page;
  for (int tries = 0; page.empty() && tries < 1000; ++tries)
    page = ask("GET " + path());  // closed as silent where this test had no processor for so long
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
}

TEST_F(Serve, HeadSaysWhatAGetWouldBring) {
  const auto head = ask("HEAD " + path());
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(head, ::testing::EndsWith("\r\n\r\n"));
}

// 600 connections of another user of this machine, none with a whole request.
TEST_F(Serve, HalfOpenConnectionsDoNotKeepARequestWaiting) {
  std::vector<tcp::socket> half;
  for (int i = 0; i < 600; ++i) {
    half.push_back(connect());
    boost::system::error_code ignored;
    boost::asio::write(half.back(), boost::asio::buffer(std::string("GET / HTT")), ignored);
  }
  EXPECT_THAT(ask("GET " + path()), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(rest(half.front()), "") << "the oldest gave way";
}

TEST_F(Serve, TheOldestConnectionWithoutARequestGivesWay) {
  stop();
  Limits limits;
  limits.connections = 2;
  start(limits);
  auto one = connect();
  auto two = connect();
  auto three = connect();
  const std::string request = "GET " + path() + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  boost::asio::write(three, boost::asio::buffer(request));
  EXPECT_THAT(rest(three), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(rest(one), "");
}

// Anyone on this machine can be refused, and keep the connection open.
TEST_F(Serve, RefusedConnectionsThatStayOpenGiveWayToo) {
  stop();
  Limits limits;
  limits.connections = 4;
  limits.silence = std::chrono::hours(1);
  start(limits);
  std::vector<tcp::socket> refused;
  for (int i = 0; i < 3; ++i) {
    refused.push_back(connect());
    boost::asio::write(refused.back(),
                       boost::asio::buffer(std::string("GET /wrong/ HTTP/1.1\r\nHost: localhost\r\n\r\n")));
    EXPECT_THAT(rest(refused.back()), StartsWith("HTTP/1.1 404"));
  }
  std::vector<tcp::socket> asking;
  for (int i = 0; i < 4; ++i) {
    asking.push_back(connect());
    boost::asio::write(
        asking.back(),
        boost::asio::buffer("GET " + path() + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    EXPECT_THAT(rest(asking.back()), StartsWith("HTTP/1.1 200")) << i;
  }
}

// The answer is larger than the kernel's buffers.
TEST_F(Serve, ClientsThatDoNotReadTheirAnswerDoNotKeepOthersWaiting) {
  stop();
  Limits limits;
  limits.connections = 3;
  limits.silence = std::chrono::hours(1);
  start(limits);
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 6; ++i) {
    silent.push_back(connect());
    boost::asio::write(silent.back(),
                       boost::asio::buffer("GET " + path() + "large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    std::string first(1, ' ');
    boost::asio::read(silent.back(), boost::asio::buffer(first));
  }
  EXPECT_THAT(ask("GET " + path()), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(rest(silent.front()).size(), kLarge) << "the oldest gave way";
}

TEST_F(Serve, AConnectionCarriesSeveralRequests) {
  auto socket = connect();
  const std::string first = "GET " + path() + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string last =
      "GET " + path() + "data.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  boost::asio::write(socket, boost::asio::buffer(first + last));
  const auto both = rest(socket);
  EXPECT_THAT(both, HasSubstr("page"));
  EXPECT_THAT(both, HasSubstr("{}"));
}

TEST_F(Serve, ATakenPortIsSaid) {
  boost::asio::io_context other;
  const auto second = Server::listen(other, server_->port(), nullptr, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("--port"));
}

TEST(ServeAddress, EachServerHasATokenOfItsOwn) {
  boost::asio::io_context io;
  const auto a = Server::listen(io, 0, nullptr, {}), b = Server::listen(io, 0, nullptr, {});
  const auto token = [](const auto& server) {
    return (*server)->address().substr((*server)->address().size() - 33);
  };
  EXPECT_NE(token(a), token(b));
  EXPECT_THAT((*a)->address(), StartsWith("http://127.0.0.1:"));
}

}  // namespace
}  // namespace sweep::serve
