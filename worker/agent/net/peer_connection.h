// Link: one proven connection between a node agent and its head agent. It carries frames in order, sends beats,
// and keeps the lease: a connection that says nothing for the lease time is lost, whatever TCP believes. It
// estimates how far the other clock is from ours. REQUIRES: used on the event loop; `closed` is called at most
// once, and never by close().
#pragma once
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "schema/frame.h"
#include "schema/trial.h"

namespace sweep::agent {

class PeerConnection : public std::enable_shared_from_this<PeerConnection> {
 public:
  using OnFrame = std::function<void(Frame)>;
  using OnClosed = std::function<void(const std::string& why)>;

  PeerConnection(boost::asio::ip::tcp::socket socket, double lease_s, FrameReader reader);
  void start(OnFrame, OnClosed);
  void send(const Frame&);
  void close();  // what was sent is still delivered, as far as the connection takes it at once
  bool open() const { return open_; }
  bool written() const { return broken_ || unwritten_.empty(); }
  i64 clock_offset_ns() const { return offset_ns_; }  // the other's UTC clock minus ours
  std::string peer() const { return peer_; }

 private:
  void receive();
  void take(std::string_view bytes);
  bool is_beat(const Frame&);
  void write_more();
  void arm();
  void lost(const std::string& why);

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  const double lease_s_;
  FrameReader reader_;
  OnFrame on_frame_;
  OnClosed on_closed_;
  std::string peer_;
  std::array<char, 65536> buffer_{};
  std::deque<std::string> unwritten_;
  std::size_t unwritten_bytes_ = 0;
  bool open_ = true, writing_ = false, broken_ = false;
  double silent_s_ = 0, last_look_s_ = 0;
  i64 offset_ns_ = 0, best_trip_ns_ = 0;  // 0: not measured yet
};

}  // namespace sweep::agent
