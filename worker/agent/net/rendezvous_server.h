// RendezvousServer: the Unix socket through which the ranks of one attempt on this node reach the store
// (store_client.h). It carries frames; what they mean is the head agent's. REQUIRES: used on the event loop;
// the folder is private.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "runtime/accept_callers.h"
#include "runtime/coroutine.h"
#include "schema/frame.h"
#include "schema/trial.h"

namespace sweep::agent {

class RendezvousServer {
 public:
  using OnFrame = std::function<void(i64 client, Frame)>;
  static Expected<std::unique_ptr<RendezvousServer>> open(boost::asio::io_context& io,
                                                          std::filesystem::path socket, OnFrame on_frame);
  ~RendezvousServer();
  void answer(i64 client, const Frame&);
  const std::filesystem::path& socket() const { return path_; }

 private:
  using Protocol = boost::asio::local::stream_protocol;
  struct Client;
  RendezvousServer(boost::asio::io_context& io, std::filesystem::path socket, OnFrame on_frame);
  using Alive = std::shared_ptr<const bool>;
  awaitable<void> receive(std::shared_ptr<Client>, Alive);
  void write_more(const std::shared_ptr<Client>&);

  std::filesystem::path path_;
  OnFrame on_frame_;
  Protocol::acceptor acceptor_;
  std::map<i64, std::shared_ptr<Client>> clients_;
  i64 last_client_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sweep::agent
