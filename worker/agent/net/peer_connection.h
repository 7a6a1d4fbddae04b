// PeerConnection: one proven connection between a node agent and its head agent. It carries frames in order,
// sends beats, and keeps the lease: a connection that is silent for the lease time is lost, whatever TCP
// reports. REQUIRES: used on the event loop; `closed` is called at most once, and never by close().
#pragma once
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "runtime/coroutine.h"
#include "schema/agent_message.h"
#include "schema/trial.h"
#include "worker/agent/net/peer_clock.h"

namespace sweep::agent {

class PeerConnection : public std::enable_shared_from_this<PeerConnection> {
 public:
  using OnMessage = std::function<void(const AgentMessage&)>;
  using OnClosed = std::function<void(const std::string& why)>;

  PeerConnection(boost::asio::ip::tcp::socket socket, double lease_s, FrameReader reader);
  // Bytes that are no message close the connection.
  void start(OnMessage, OnClosed);
  void send(const Frame&);
  // Sent frames are still delivered, as far as the connection takes them at once.
  void close();
  bool open() const { return state_ == State::kOpen; }
  bool written() const { return state_ == State::kBroken || outgoing_.frames.empty(); }
  // The other's UTC clock minus ours.
  i64 clock_offset_ns() const { return clock_.offset_ns(); }
  std::string peer() const { return peer_; }

 private:
  // Closing: frames that were sent before close() are still written.
  enum class State { kOpen, kClosing, kBroken };
  using Self = std::shared_ptr<PeerConnection>;
  awaitable<void> receive(Self);
  awaitable<void> beat(Self);
  void take(std::string_view bytes);
  bool is_beat(const Frame&);
  void write_more();
  void lost(const std::string& why);

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  PeerLease lease_;
  PeerClock clock_;
  FrameReader reader_;
  OnMessage on_message_;
  OnClosed on_closed_;
  std::string peer_;
  std::array<char, 65536> buffer_{};
  // Frames that are to be written, the front one first.
  struct {
    std::deque<std::string> frames;
    std::size_t bytes = 0;
    // The front one is on its way.
    bool writing = false;
  } outgoing_;
  State state_ = State::kOpen;
};

}  // namespace sweep::agent
