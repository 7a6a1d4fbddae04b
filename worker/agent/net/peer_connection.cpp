#include "worker/agent/net/peer_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>

#include "base/time.h"

namespace sweep::agent {
namespace {

constexpr std::size_t kMostUnwritten = 512u << 20;

i64 steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

PeerConnection::PeerConnection(boost::asio::ip::tcp::socket socket, double lease_s, FrameReader reader)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      lease_(lease_s),
      reader_(std::move(reader)) {
  boost::system::error_code ec;
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ec);
  const auto at = socket_.remote_endpoint(ec);
  peer_ = ec ? "unknown" : fmt::format("{}:{}", at.address().to_string(), at.port());
  reader_.allow(kLongestFrame);
}

void PeerConnection::start(OnMessage on_message, OnClosed on_closed) {
  on_message_ = std::move(on_message);
  on_closed_ = std::move(on_closed);
  lease_.begin(steady_s());
  start_coroutine(socket_.get_executor(), beat(shared_from_this()));
  start_coroutine(socket_.get_executor(), receive(shared_from_this()));
}

// Reads first what came with the proof, but not from within start().
awaitable<void> PeerConnection::receive(Self) {
  co_await boost::asio::post(boost::asio::use_awaitable);
  take({});
  while (open()) {
    const auto [error, bytes] = co_await socket_.async_read_some(boost::asio::buffer(buffer_), kAsTuple);
    if (!open()) co_return;
    if (error) co_return lost("the connection was closed: " + error.message());
    lease_.on_message();
    take({buffer_.data(), bytes});
  }
}

void PeerConnection::take(std::string_view bytes) {
  reader_.feed(bytes);
  while (open()) {
    auto frame = reader_.next();
    if (!frame) return lost(frame.error().message);
    if (!*frame) return;
    if (is_beat(**frame)) continue;
    const auto message = message_from(**frame);
    if (!message) return lost("it sent what is no message: " + message.error().text);
    on_message_(*message);
  }
}

// A beat {"beat": our steady clock} is answered by {"echo": the same, "clock": their UTC}.
bool PeerConnection::is_beat(const Frame& frame) {
  if (frame.head.contains("beat")) {
    send({{{"echo", integer_of(frame.head, "beat")}, {"clock", unix_ns_now()}}, {}});
    return true;
  }
  if (!frame.head.contains("echo")) return false;
  clock_.answered(integer_of(frame.head, "echo"), integer_of(frame.head, "clock"), steady_ns(),
                  unix_ns_now());
  return true;
}

void PeerConnection::send(const Frame& frame) {
  if (!open()) return;
  outgoing_.frames.push_back(encode(frame));
  outgoing_.bytes += outgoing_.frames.back().size();
  if (outgoing_.bytes > kMostUnwritten) return lost("the other side does not read");
  write_more();
}

void PeerConnection::write_more() {
  if (outgoing_.writing || outgoing_.frames.empty()) return;
  outgoing_.writing = true;
  boost::asio::async_write(socket_, boost::asio::buffer(outgoing_.frames.front()),
                           [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                             self->outgoing_.writing = false;
                             if (error && self->open())
                               return self->lost("the connection broke: " + error.message());
                             if (error) return void(self->state_ = State::kBroken);
                             self->outgoing_.bytes -= self->outgoing_.frames.front().size();
                             self->outgoing_.frames.pop_front();
                             self->write_more();
                             if (!self->open() && self->outgoing_.frames.empty()) self->close();
                           });
}

awaitable<void> PeerConnection::beat(Self) {
  const auto pause = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(lease_.seconds_per_beat()));
  while (open()) {
    timer_.expires_after(pause);
    const auto [error] = co_await timer_.async_wait(kAsTuple);
    if (error || !open()) co_return;
    if (lease_.look(steady_s()))
      co_return lost(fmt::format("nothing was heard for the lease of {:.1f} s", lease_.seconds()));
    send({{{"beat", steady_ns()}}, {}});
  }
}

void PeerConnection::close() {
  if (open()) state_ = State::kClosing;
  timer_.cancel();
  if (outgoing_.writing || !outgoing_.frames.empty()) return;  // once it is written
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

void PeerConnection::lost(const std::string& why) {
  if (!open()) return;
  state_ = State::kBroken;
  timer_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (on_closed_) std::exchange(on_closed_, nullptr)(why);
}

}  // namespace sweep::agent
