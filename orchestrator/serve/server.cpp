#include "orchestrator/serve/server.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <random>
#include <vector>

#include "base/expected.h"
#include "orchestrator/serve/session.h"

namespace sweep::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string random_digits() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

// The state that connections share; it lives until the last of them is gone.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(asio::io_context& io, Site site, Limits limits)
      : acceptor_(io), shared_{std::move(site), limits, random_digits()} {}

  Expected<void> open(int port) {
    boost::system::error_code error;
    const tcp::endpoint here(asio::ip::address_v4::loopback(), static_cast<unsigned short>(port));
    acceptor_.open(here.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(here, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return fail(fmt::format(
          "port {} of 127.0.0.1 cannot be served ({}); name another with --port, or 0 for a free one", port,
          error.message()));
    accept();
    return {};
  }
  void close() {
    boost::system::error_code ignored;
    closed_ = true;
    acceptor_.close(ignored);
  }
  int port() const { return acceptor_.local_endpoint().port(); }
  const std::string& token() const { return shared_.token; }

 private:
  // If all connections are taken and none waits for a request, new ones wait in the kernel's queue.
  void accept() {
    if (closed_ || accepting_ || !has_room()) return;
    accepting_ = true;
    acceptor_.async_accept(
        [self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
          self->accepting_ = false;
          if (!error) self->serve(std::move(socket));
          self->accept();
        });
  }
  // Half-open connections, however many, do not keep a request waiting: the oldest gives way.
  bool has_room() {
    std::erase_if(connections_, [](const auto& one) { return one.expired(); });
    if (open_ < shared_.limits.connections) return true;
    for (auto one = connections_.begin(); one != connections_.end(); ++one) {
      const auto connection = one->lock();
      if (!connection || !connection->waits_for_request()) continue;
      connections_.erase(one);
      connection->close();
      return true;
    }
    return false;
  }
  void serve(tcp::socket socket) {
    ++open_;
    connections_.push_back(start_session(std::move(socket), shared_, [self = shared_from_this()] {
      --self->open_;
      self->accept();
    }));
  }

  tcp::acceptor acceptor_;
  Shared shared_;
  std::vector<std::weak_ptr<Connection>> connections_;  // the oldest first
  int open_ = 0;
  bool accepting_ = false, closed_ = false;
};

class Loopback final : public Server {
 public:
  explicit Loopback(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Loopback() override { core_->close(); }
  int port() const override { return core_->port(); }
  std::string address() const override {
    return fmt::format("http://127.0.0.1:{}/{}/", core_->port(), core_->token());
  }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return differs == 0;
}

bool names_loopback(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (!host.starts_with(name)) continue;
    const auto port = host.substr(name.size());
    if (port.empty()) return true;
    return port.size() > 1 && port.size() < 7 && port[0] == ':' &&
           port.find_first_not_of("0123456789", 1) == std::string_view::npos;
  }
  return false;
}

Expected<std::unique_ptr<Server>> Server::listen(asio::io_context& io, int port, Site site, Limits limits) {
  auto core = std::make_shared<Core>(io, std::move(site), limits);
  SWEEP_TRY(core->open(port));
  return std::make_unique<Loopback>(std::move(core));
}

Expected<void> serve_until_signal(int port, const Site& site,
                                  const std::function<void(const std::string& address)>& ready) {
  asio::io_context io;
  asio::signal_set signals(io, SIGINT, SIGTERM);
  auto server = Server::listen(io, port, site, {});
  if (!server) return tl::unexpected<Error>(server.error());
  signals.async_wait([&](const boost::system::error_code&, int) { io.stop(); });
  ready((*server)->address());
  io.run();
  return {};
}

}  // namespace sweep::serve
