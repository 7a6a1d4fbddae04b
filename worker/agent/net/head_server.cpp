#include "worker/agent/net/head_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "base/fail.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::agent {
namespace {

using boost::asio::ip::tcp;
constexpr std::size_t kLongestHello = 4096, kMostUnproven = 64, kMostRefusals = 256;
// The text has no numbers of the caller's, so that it is logged once.
constexpr auto kNoHello = "its first bytes are no frame of at most 4096 bytes";
constexpr auto kSpeakWithin = std::chrono::seconds(5);

}  // namespace

struct HeadServer::Caller {
  Caller(tcp::socket s, boost::asio::io_context& io, std::string from)
      : socket(std::move(s)), timer(io), reader(kLongestHello), address(std::move(from)) {}
  tcp::socket socket;
  boost::asio::steady_timer timer;
  FrameReader reader;
  std::string challenge = new_challenge(), address;
  bool done = false;
};

HeadServer::HeadServer(boost::asio::io_context& io, i64 nodes, double lease_s, HeadServerListener& listener)
    : io_(io), nodes_(nodes), lease_s_(lease_s), listener_(listener), acceptor_(io) {}

HeadServer::~HeadServer() {
  *alive_ = false;
  close_all();
}

Expected<void> HeadServer::listen(const Endpoint& at) {
  boost::system::error_code ec;
  const auto address = boost::asio::ip::make_address(at.address, ec);
  const tcp::endpoint endpoint(address, 0);
  if (!ec) acceptor_.open(endpoint.protocol(), ec);
  if (!ec) acceptor_.bind(endpoint, ec);
  if (!ec) acceptor_.listen(4096, ec);
  if (ec) return fail("cannot listen on {} ({}): {}", at.address, at.interface, ec.message());
  port_ = acceptor_.local_endpoint().port();
  start_coroutine(
      io_, accept_callers<tcp>(acceptor_, alive_, [this](tcp::socket socket, const tcp::endpoint& from) {
        const std::string address = from.address().to_string();
        start_coroutine(io_, meet(std::make_shared<Caller>(std::move(socket), io_, address)));
      }));
  return {};
}

void HeadServer::stop_listening() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

awaitable<void> HeadServer::meet(std::shared_ptr<Caller> caller) {
  expect(caller);
  const std::string greeting = encode({{{"sweep_agent", kVersion}, {"challenge", caller->challenge}}, {}});
  co_await boost::asio::async_write(caller->socket, boost::asio::buffer(greeting), kAsTuple);
  std::array<char, 1024> buffer{};
  while (!caller->done) {
    const auto [error, bytes] =
        co_await caller->socket.async_read_some(boost::asio::buffer(buffer), kAsTuple);
    if (caller->done) co_return;
    if (error) co_return refuse(caller, "it closed without a proof");
    caller->reader.feed({buffer.data(), bytes});
    const auto frame = caller->reader.next();
    if (!frame) co_return refuse(caller, kNoHello);
    if (*frame) co_return judge(caller, **frame);
  }
}

// Node agents speak at once. Where too many connections have proven nothing, the oldest of them is closed.
void HeadServer::expect(const std::shared_ptr<Caller>& caller) {
  callers_.push_back(caller);
  if (callers_.size() > kMostUnproven + static_cast<std::size_t>(nodes_)) {
    const auto oldest = callers_.front();  // a copy: refuse() removes it from the list
    refuse(oldest, "too many connections that have proven nothing");
  }
  caller->timer.expires_after(kSpeakWithin);
  caller->timer.async_wait([this, caller](const boost::system::error_code& late) {
    if (!late && !caller->done) refuse(caller, "it did not speak in time");
  });
}

void HeadServer::judge(const std::shared_ptr<Caller>& caller, const Frame& frame) {
  const auto said = from_json<NodeProof>(frame.head);
  if (!said || said->challenge.size() != caller->challenge.size() ||
      !secret_.proven("node", caller->challenge, said->challenge, said->proof))
    return refuse(caller, "it does not know the token");
  const i64 node = said->node;
  if (said->version != kVersion)
    return refuse(caller, fmt::format("its version is {}, ours {}: use one build on all nodes", said->version,
                                      kVersion));
  if (node < 1 || node >= nodes_) return refuse(caller, fmt::format("there is no node {}", node));
  if (!seen_.insert(node).second) return refuse(caller, fmt::format("node {} has joined before", node));
  const auto join = from_json<NodeJoin>(frame.head);
  if (!join) spdlog::warn("node {} joins, but its hello cannot be read: {}", node, join.error().message);
  let_in(caller, node, {{{"proof", secret_.proof("head", said->challenge, caller->challenge)}}, {}},
         join ? join->hello : NodeHello());
}

void HeadServer::refuse(const std::shared_ptr<Caller>& caller, const std::string& why) {
  caller->done = true;
  caller->timer.cancel();
  boost::system::error_code ignored;
  caller->socket.close(ignored);
  callers_.remove(caller);
  if (refused_.size() < kMostRefusals && refused_.insert(caller->address + ": " + why).second)
    spdlog::warn("refused a connection from {}: {} (logged once for this address and cause)", caller->address,
                 why);
}

void HeadServer::let_in(const std::shared_ptr<Caller>& caller, i64 node, const Frame& answer,
                        NodeHello hello) {
  caller->done = true;
  caller->timer.cancel();
  callers_.remove(caller);
  const auto link =
      std::make_shared<PeerConnection>(std::move(caller->socket), lease_s_, std::move(caller->reader));
  links_[node] = link;
  link->send(answer);
  link->start([this, node](const AgentMessage& message) { listener_.node_said(node, message); },
              [this, node](const std::string& why) {
                links_.erase(node);
                listener_.node_lost(node, why);
              });
  listener_.node_joined(node, std::move(hello));
}

void HeadServer::send(i64 node, const AgentMessage& message) {
  if (const auto link = links_.find(node); link != links_.end()) link->second->send(to_frame(message));
}

i64 HeadServer::clock_offset_ns(i64 node) const {
  const auto link = links_.find(node);
  return link == links_.end() ? 0 : link->second->clock_offset_ns();
}

void HeadServer::close_all() {
  stop_listening();
  for (auto& [node, link] : std::exchange(links_, {})) link->close();
  for (const auto& caller : std::exchange(callers_, {})) {
    caller->done = true;
    caller->timer.cancel();
    boost::system::error_code ignored;
    caller->socket.close(ignored);
  }
}

}  // namespace sweep::agent
