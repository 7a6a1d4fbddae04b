#include "worker/agent/net/peer_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "base/time.h"

namespace sweep::agent {
namespace {

constexpr int kBeatsPerLease = 5;
constexpr std::size_t kMostUnwritten = 512u << 20;

}  // namespace

PeerConnection::PeerConnection(boost::asio::ip::tcp::socket socket, double lease_s, FrameReader reader)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      lease_s_(lease_s),
      reader_(std::move(reader)) {
  boost::system::error_code ec;
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ec);
  const auto at = socket_.remote_endpoint(ec);
  peer_ = ec ? "unknown" : fmt::format("{}:{}", at.address().to_string(), at.port());
  reader_.allow(kLongestFrame);
}

void PeerConnection::start(OnFrame on_frame, OnClosed on_closed) {
  on_frame_ = std::move(on_frame);
  on_closed_ = std::move(on_closed);
  last_look_s_ = steady_s();
  arm();
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->take({}); });
  receive();
}

void PeerConnection::receive() {
  socket_.async_read_some(
      boost::asio::buffer(buffer_),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
        if (!self->open_) return;
        if (error) return self->lost("the connection was closed: " + error.message());
        self->silent_s_ = 0;
        self->take({self->buffer_.data(), bytes});
        if (self->open_) self->receive();
      });
}

void PeerConnection::take(std::string_view bytes) {
  reader_.feed(bytes);
  while (open_) {
    auto frame = reader_.next();
    if (!frame) return lost(frame.error().message);
    if (!*frame) return;
    if (!is_beat(**frame)) on_frame_(std::move(**frame));
  }
}

// A beat {"beat": our clock} is answered by {"echo": the same, "clock": theirs}. The quickest round trip says
// most about the clocks.
bool PeerConnection::is_beat(const Frame& frame) {
  if (frame.head.contains("beat")) {
    send({{{"echo", integer_of(frame.head, "beat")}, {"clock", unix_ns_now()}}, {}});
    return true;
  }
  if (!frame.head.contains("echo")) return false;
  const i64 now = unix_ns_now(), sent = integer_of(frame.head, "echo"), trip = std::max<i64>(now - sent, 1);
  if (best_trip_ns_ == 0 || trip <= best_trip_ns_) {
    best_trip_ns_ = trip;
    offset_ns_ = integer_of(frame.head, "clock") - (sent + trip / 2);
  }
  return true;
}

void PeerConnection::send(const Frame& frame) {
  if (!open_) return;
  unwritten_.push_back(encode(frame));
  unwritten_bytes_ += unwritten_.back().size();
  if (unwritten_bytes_ > kMostUnwritten) return lost("the other side does not read");
  write_more();
}

void PeerConnection::write_more() {
  if (writing_ || unwritten_.empty()) return;
  writing_ = true;
  boost::asio::async_write(socket_, boost::asio::buffer(unwritten_.front()),
                           [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                             self->writing_ = false;
                             if (error && self->open_)
                               return self->lost("the connection broke: " + error.message());
                             if (error) return void(self->broken_ = true);
                             self->unwritten_bytes_ -= self->unwritten_.front().size();
                             self->unwritten_.pop_front();
                             self->write_more();
                             if (!self->open_ && self->unwritten_.empty()) self->close();
                           });
}

// Time in which this process itself did not run counts as one beat at most: a stopped agent that goes on learns
// from the connection, not from its own absence, whether the other one gave it up.
void PeerConnection::arm() {
  const double every = lease_s_ / kBeatsPerLease;
  timer_.expires_after(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(every)));
  timer_.async_wait([self = shared_from_this(), every](const boost::system::error_code& error) {
    if (error || !self->open_) return;
    const double now = steady_s();
    self->silent_s_ += std::min(now - self->last_look_s_, 2 * every);
    self->last_look_s_ = now;
    if (self->silent_s_ >= self->lease_s_)
      return self->lost(fmt::format("nothing was heard for the lease of {:.1f} s", self->lease_s_));
    self->send({{{"beat", unix_ns_now()}}, {}});
    if (self->open_) self->arm();
  });
}

void PeerConnection::close() {
  open_ = false;
  timer_.cancel();
  if (writing_ || !unwritten_.empty()) return;  // once it is written
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

void PeerConnection::lost(const std::string& why) {
  if (!open_) return;
  open_ = false;
  broken_ = true;
  timer_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (on_closed_) std::exchange(on_closed_, nullptr)(why);
}

}  // namespace sweep::agent
