#include "worker/agent/net/head_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstdlib>

#include "base/fail.h"
#include "schema/codec.h"
#include "schema/version.h"

namespace sweep::agent {
namespace {

using boost::asio::ip::tcp;
constexpr std::size_t kLongestJoin = 4096;
constexpr int kWithinMs = 15'000;

// A frame read in blocking mode; the socket has a receive timeout.
Expected<Frame> read_frame(tcp::socket& socket, FrameReader& reader) {
  std::array<char, 1024> buffer;
  while (true) {
    SWEEP_GET(auto frame, reader.next());
    if (frame) return std::move(*frame);
    const ssize_t n = ::recv(socket.native_handle(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("the head agent closed the connection or did not answer in time");
    reader.feed({buffer.data(), static_cast<std::size_t>(n)});
  }
}

Expected<void> prove(tcp::socket& socket, FrameReader& reader, const Join& join, const NodeHello& hello) {
  SWEEP_GET(const auto greeting, read_frame(socket, reader));
  const std::string theirs = text_of(greeting.head, "challenge"), ours = new_challenge();
  const NodeProof proof{ours, join.secret->proof("node", theirs, ours), join.node, kVersion};
  const std::string said = encode({to_json(NodeJoin{proof, hello}), {}});
  boost::system::error_code ec;
  boost::asio::write(socket, boost::asio::buffer(said), ec);
  if (ec) return fail("the head agent closed the connection: " + ec.message());
  SWEEP_GET(const auto answer, read_frame(socket, reader));
  if (!join.secret->proven("head", ours, theirs, text_of(answer.head, "proof")))
    return fail("who answers there does not know the token: it is not our head agent");
  return {};
}

Expected<void> connect_within(tcp::socket& socket, const tcp::endpoint& to) {
  boost::system::error_code ec;
  socket.open(to.protocol(), ec);
  if (!ec) socket.non_blocking(true, ec);
  if (!ec) socket.connect(to, ec);
  if (ec == boost::asio::error::in_progress || ec == boost::asio::error::would_block) {
    pollfd one{socket.native_handle(), POLLOUT, 0};
    int cause = ETIMEDOUT;
    socklen_t size = sizeof cause;
    if (::poll(&one, 1, kWithinMs) == 1)
      ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &cause, &size);
    ec = boost::system::error_code(cause, boost::system::system_category());
  }
  if (ec) return fail(ec.message());
  socket.non_blocking(false, ec);
  socket.native_non_blocking(false, ec);
  const timeval limit{kWithinMs / 1000, 0};
  ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return {};
}

}  // namespace

Expected<Join> read_join(int fd) {
  std::string bytes;
  char byte = 0;
  while (bytes.size() < kLongestJoin) {  // one line; what starts us may keep our standard input open
    const ssize_t n = ::read(fd, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || byte == '\n') break;
    bytes += byte;
  }
  const auto line = from_text<JoinLine>(bytes);
  if (!line) return fail("standard input: " + line.error().message);
  Join out{line->address, static_cast<int>(std::clamp<i64>(line->port, 0, 65536)),
           Secret::from_hex(line->token), line->node};
  const char* step = std::getenv("SLURM_NODEID");
  if (out.node == 0 && step != nullptr) out.node = std::atoll(step) + 1;
  if (out.address.empty() || !out.secret || out.port < 1 || out.port > 65535 || out.node < 1)
    return fail("the line on standard input must hold address, port, token and node");
  return out;
}

std::string join_line(const Join& join) {
  return to_text(JoinLine{join.address, join.port, join.secret->hex(), join.node}) + "\n";
}

Expected<HeadClient> connect_to_head(boost::asio::io_context& io, const Join& join, double lease_s,
                                     const NodeHello& hello) {
  const auto where = fmt::format("the head agent at {} port {}", join.address, join.port);
  boost::system::error_code ec;
  const auto address = boost::asio::ip::make_address(join.address, ec);
  if (ec) return fail("{}: that is no address", where);
  tcp::socket socket(io);
  FrameReader reader(kLongestJoin);
  auto done = connect_within(socket, {address, static_cast<std::uint16_t>(join.port)}).and_then([&] {
    return prove(socket, reader, join, hello);
  });
  if (!done) return fail("{}: {}", where, done.error().message);
  const std::string here = socket.local_endpoint(ec).address().to_string();
  socket.non_blocking(true, ec);
  return HeadClient{std::make_shared<PeerConnection>(std::move(socket), lease_s, std::move(reader)),
                    {here, interface_of(here)}};
}

}  // namespace sweep::agent
