#include "orchestrator/serve/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/expected.h"

namespace sweep::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Request = http::request<http::empty_body>;
using Response = http::response<http::span_body<const char>>;

std::string random_digits() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

struct Shared {
  Site site;
  Limits limits;
  std::string token;
};

// Bytes read of a refused request, so that the refusal reaches its sender.
constexpr std::size_t kMostDrained = 1 << 20;

struct Answer {
  http::status status = http::status::ok;
  Document document;
};

Answer plain(http::status status, std::string sentence) {
  sentence += '\n';
  return {status,
          {"text/plain; charset=utf-8", std::make_shared<const std::string>(std::move(sentence)), ""}};
}

// The part of the target after the token and its slash, without a query; nullopt: another token.
std::optional<std::string_view> name_behind(std::string_view target, std::string_view token) {
  target = target.substr(0, target.find('?'));
  const std::size_t slash = target.find('/', 1);
  if (target.empty() || target[0] != '/' || slash == std::string_view::npos) return std::nullopt;
  if (!same_secret(target.substr(1, slash - 1), token)) return std::nullopt;
  return target.substr(slash + 1);
}

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

Answer answer_to(const Request& request, bool has_body, const Shared& shared) {
  if (request.count(http::field::host) != 1 || !names_loopback(view(request[http::field::host])))
    return plain(http::status::misdirected_request, "this server answers to 127.0.0.1 and localhost only");
  if (request.method() != http::verb::get && request.method() != http::verb::head)
    return plain(http::status::method_not_allowed, "only GET and HEAD are answered");
  if (has_body) return plain(http::status::bad_request, "a GET or HEAD has no body");
  const auto name = name_behind(view(request.target()), shared.token);
  if (!name)
    return plain(http::status::not_found,
                 "there is no such page; take the whole address that `sweep serve` printed");
  auto document = shared.site(*name);
  if (!document) return plain(http::status::internal_server_error, document.error().message);
  if (!document->body) return plain(http::status::not_found, "there is no such page");
  const bool known = !document->version.empty() &&
                     view(request[http::field::if_none_match]) == "\"" + document->version + "\"";
  return {known ? http::status::not_modified : http::status::ok, std::move(*document)};
}

// One connection, answered request after request until it closes, is idle for too long or fails.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, std::shared_ptr<const Shared> shared)
      : stream_(std::move(socket)), shared_(std::move(shared)) {}

  // True: the client's turn is to ask or to close. False: it is to take its answer.
  bool waits_for_client() const { return waits_; }
  void close() { stream_.close(); }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->limits.header_bytes));
    parser_->body_limit(boost::none);  // a body is never read
    stream_.expires_after(shared_->limits.silence);
    waits_ = true;
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](beast::error_code error, std::size_t) { self->on_header(error); });
  }

 private:
  void on_header(beast::error_code error) {
    waits_ = false;
    if (error == http::error::header_limit)
      return write(plain(http::status::request_header_fields_too_large, "the request's header is too long"),
                   false);
    if (error && error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message)
      return write(plain(http::status::bad_request, "this is not HTTP"), false);
    if (error) return;  // gone or silent: the connection closes with this object
    const Request& request = parser_->get();
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    Answer answer = answer_to(request, has_body, *shared_);
    const bool fine = answer.status == http::status::ok || answer.status == http::status::not_modified;
    write(std::move(answer), fine && request.keep_alive());
  }

  void write(Answer answer, bool keep_alive) {
    answer_ = std::move(answer);
    response_.emplace(answer_.status, 11);
    response_->set(http::field::content_type, answer_.document.type);
    response_->set(http::field::cache_control, "no-store");
    response_->set("X-Content-Type-Options", "nosniff");
    response_->set("X-Frame-Options", "DENY");
    response_->set("Referrer-Policy", "no-referrer");
    response_->set("Cross-Origin-Resource-Policy", "same-origin");
    if (answer_.status == http::status::method_not_allowed) response_->set(http::field::allow, "GET, HEAD");
    if (!answer_.document.version.empty())
      response_->set(http::field::etag, "\"" + answer_.document.version + "\"");
    const bool unchanged = answer_.status == http::status::not_modified;
    const bool head = parser_->is_header_done() && parser_->get().method() == http::verb::head;
    const std::string& body = *answer_.document.body;
    response_->body() = {body.data(), unchanged || head ? 0 : body.size()};
    response_->keep_alive(keep_alive);
    if (!unchanged) response_->content_length(body.size());  // the length that a GET would have
    stream_.expires_after(shared_->limits.silence);
    http::async_write(stream_, *response_,
                      [self = shared_from_this(), keep_alive](beast::error_code error, std::size_t) {
                        if (error) return;
                        if (keep_alive) return self->read();
                        self->stream_.socket().shutdown(asio::socket_base::shutdown_send, error);
                        self->waits_ = true;
                        self->drain();
                      });
  }

  // Closing with unread bytes would reset the connection and take the answer with it.
  void drain() {
    stream_.async_read_some(asio::buffer(scrap_),
                            [self = shared_from_this()](beast::error_code error, std::size_t n) {
                              self->drained_ += n;
                              if (!error && self->drained_ < kMostDrained) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  std::shared_ptr<const Shared> shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::optional<Response> response_;
  Answer answer_;
  std::array<char, 4096> scrap_{};
  std::size_t drained_ = 0;
  bool waits_ = false;
};

// The acceptor and what it has accepted.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(asio::io_context& io, Site site, Limits limits)
      : acceptor_(io),
        shared_(std::make_shared<const Shared>(Shared{std::move(site), limits, random_digits()})) {}

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
  const std::string& token() const { return shared_->token; }

 private:
  void accept() {
    acceptor_.async_accept(
        [self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
          if (self->closed_) return;
          if (!error) self->serve(std::move(socket));
          self->accept();
        });
  }
  // Neither half-open nor refused connections, however many, keep a request waiting, nor clients that do not read: the
  // oldest that waits for its client gives way, else the oldest. The newest stays.
  void make_room() {
    std::erase_if(connections_, [](const auto& one) { return one.expired(); });
    if (connections_.size() < static_cast<std::size_t>(shared_->limits.connections)) return;
    const auto newest = std::prev(connections_.end());
    const auto waiting = std::find_if(connections_.begin(), newest, [](const auto& one) {
      const auto connection = one.lock();
      return connection && connection->waits_for_client();
    });
    const auto given_up = waiting == newest ? connections_.begin() : waiting;
    if (const auto connection = given_up->lock()) connection->close();
    connections_.erase(given_up);
  }
  void serve(tcp::socket socket) {
    make_room();
    const auto session = std::make_shared<Session>(std::move(socket), shared_);
    connections_.push_back(session);
    session->read();
  }

  tcp::acceptor acceptor_;
  std::shared_ptr<const Shared> shared_;
  std::vector<std::weak_ptr<Session>> connections_;  // the oldest first
  bool closed_ = false;
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
