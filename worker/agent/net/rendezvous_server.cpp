#include "worker/agent/net/rendezvous_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/fail.h"
#include "runtime/store_client.h"

namespace sweep::agent {

struct RendezvousServer::Client {
  Client(Protocol::socket s, i64 number) : socket(std::move(s)), id(number), reader(kLongestFrame) {}
  Protocol::socket socket;
  i64 id;
  FrameReader reader;
  std::array<char, 65536> buffer{};
  std::deque<std::string> unwritten;
  bool writing = false;
};

RendezvousServer::RendezvousServer(boost::asio::io_context& io, std::filesystem::path socket,
                                   OnFrame on_frame)
    : path_(std::move(socket)), on_frame_(std::move(on_frame)), acceptor_(io) {}

RendezvousServer::~RendezvousServer() {
  *alive_ = false;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (auto& [id, client] : clients_) client->socket.close(ignored);
  ::unlink(path_.c_str());
}

Expected<std::unique_ptr<RendezvousServer>> RendezvousServer::open(boost::asio::io_context& io,
                                                                   std::filesystem::path socket,
                                                                   OnFrame on_frame) {
  const int fd = unix_socket(socket, true);
  if (fd < 0) return fail("{}: no socket can be made there: {}", socket.string(), std::strerror(errno));
  std::unique_ptr<RendezvousServer> door(new RendezvousServer(io, std::move(socket), std::move(on_frame)));
  door->acceptor_.assign(Protocol(), fd);
  start_coroutine(io,
                  accept_callers<Protocol>(
                      door->acceptor_, door->alive_,
                      [door = door.get()](Protocol::socket caller, const Protocol::endpoint&) {
                        const auto client = std::make_shared<Client>(std::move(caller), ++door->last_client_);
                        door->clients_[client->id] = client;
                        start_coroutine(door->acceptor_.get_executor(), door->receive(client, door->alive_));
                      }));
  return door;
}

awaitable<void> RendezvousServer::receive(std::shared_ptr<Client> client, Alive alive) {
  for (bool usable = true; usable;) {
    const auto [error, n] =
        co_await client->socket.async_read_some(boost::asio::buffer(client->buffer), kAsTuple);
    if (!*alive) co_return;
    usable = !error;
    if (usable) client->reader.feed({client->buffer.data(), n});
    while (usable) {
      auto frame = client->reader.next();
      if (!frame) spdlog::warn("a rank's connection to the store: {}", frame.error().message);
      usable = frame.has_value();
      if (!usable || !*frame) break;
      on_frame_(client->id, std::move(**frame));
      if (!*alive) co_return;
    }
  }
  clients_.erase(client->id);
}

void RendezvousServer::answer(i64 client, const Frame& frame) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;  // it is gone
  found->second->unwritten.push_back(encode(frame));
  write_more(found->second);
}

void RendezvousServer::write_more(const std::shared_ptr<Client>& client) {
  if (client->writing || client->unwritten.empty()) return;
  client->writing = true;
  boost::asio::async_write(
      client->socket, boost::asio::buffer(client->unwritten.front()),
      [this, client, alive = alive_](const boost::system::error_code& error, std::size_t) {
        if (!*alive || error) return;
        client->writing = false;
        client->unwritten.pop_front();
        write_more(client);
      });
}

}  // namespace sweep::agent
