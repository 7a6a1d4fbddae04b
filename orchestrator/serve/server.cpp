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
#include "runtime/accept_callers.h"
#include "runtime/coroutine.h"

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

using Parser = http::request_parser<http::empty_body>;

// nullopt: the client is gone or silent.
std::optional<Answer> answer_to(beast::error_code error, const Parser& parser, const Shared& shared) {
  if (error == http::error::header_limit)
    return plain(http::status::request_header_fields_too_large, "the request's header is too long");
  if (error && error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message)
    return plain(http::status::bad_request, "this is not HTTP");
  if (error) return std::nullopt;
  const bool has_body = parser.chunked() || parser.content_length().value_or(0) > 0;
  return answer_to(parser.get(), has_body, shared);
}

// Its body is the answer's.
Response response_of(const Answer& answer, bool to_head, bool keep_alive) {
  Response out(answer.status, 11);
  out.set(http::field::content_type, answer.document.type);
  out.set(http::field::cache_control, "no-store");
  out.set("X-Content-Type-Options", "nosniff");
  out.set("X-Frame-Options", "DENY");
  out.set("Referrer-Policy", "no-referrer");
  out.set("Cross-Origin-Resource-Policy", "same-origin");
  if (answer.status == http::status::method_not_allowed) out.set(http::field::allow, "GET, HEAD");
  if (!answer.document.version.empty()) out.set(http::field::etag, "\"" + answer.document.version + "\"");
  const bool unchanged = answer.status == http::status::not_modified;
  const std::string& body = *answer.document.body;
  out.body() = {body.data(), unchanged || to_head ? 0 : body.size()};
  out.keep_alive(keep_alive);
  if (!unchanged) out.content_length(body.size());  // the length that a GET would have
  return out;
}

struct Client {
  explicit Client(tcp::socket socket) : stream(std::move(socket)) {}
  beast::tcp_stream stream;
  // True: its turn is to ask or to close. False: it is to take its answer.
  bool waited_for = false;
};

// Closing with unread bytes would reset the connection and take the answer with it.
awaitable<void> drain(std::shared_ptr<Client> client) {
  std::array<char, 4096> scrap;
  for (std::size_t drained = 0; drained < kMostDrained;) {
    const auto [error, bytes] = co_await client->stream.async_read_some(asio::buffer(scrap), kAsTuple);
    if (error) co_return;
    drained += bytes;
  }
}

// Answers request after request until the client closes, is idle for too long or is refused.
awaitable<void> answer_requests(std::shared_ptr<Client> client, std::shared_ptr<const Shared> shared) {
  beast::flat_buffer buffer;
  for (bool keep_alive = true; keep_alive;) {
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(shared->limits.header_bytes));
    parser.body_limit(boost::none);  // a body is never read
    client->stream.expires_after(shared->limits.silence);
    client->waited_for = true;
    const auto [unread, read] = co_await http::async_read_header(client->stream, buffer, parser, kAsTuple);
    client->waited_for = false;
    const auto answer = answer_to(unread, parser, *shared);
    if (!answer) co_return;
    const bool fine = answer->status == http::status::ok || answer->status == http::status::not_modified;
    keep_alive = fine && parser.get().keep_alive();
    const bool to_head = parser.is_header_done() && parser.get().method() == http::verb::head;
    Response response = response_of(*answer, to_head, keep_alive);
    client->stream.expires_after(shared->limits.silence);
    const auto [unwritten, written] = co_await http::async_write(client->stream, response, kAsTuple);
    if (unwritten) co_return;
  }
  beast::error_code ignored;
  client->stream.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  client->waited_for = true;
  co_await drain(client);
}

class Loopback final : public Server {
 public:
  Loopback(asio::io_context& io, Site site, Limits limits)
      : acceptor_(io),
        shared_(std::make_shared<const Shared>(Shared{std::move(site), limits, random_digits()})) {}
  ~Loopback() override {
    *alive_ = false;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  }

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
    start_coroutine(acceptor_.get_executor(),
                    accept_callers<tcp>(acceptor_, alive_, [this](tcp::socket socket, const tcp::endpoint&) {
                      serve(std::move(socket));
                    }));
    return {};
  }
  int port() const override { return acceptor_.local_endpoint().port(); }
  std::string address() const override {
    return fmt::format("http://127.0.0.1:{}/{}/", port(), shared_->token);
  }

 private:
  // Neither half-open nor refused connections, however many, keep a request waiting, nor clients that do not read: the
  // oldest that waits for its client gives way, else the oldest. The newest stays.
  void make_room() {
    std::erase_if(clients_, [](const auto& one) { return one.expired(); });
    if (clients_.size() < static_cast<std::size_t>(shared_->limits.connections)) return;
    const auto newest = std::prev(clients_.end());
    const auto waiting = std::find_if(clients_.begin(), newest, [](const auto& one) {
      const auto client = one.lock();
      return client && client->waited_for;
    });
    const auto given_up = waiting == newest ? clients_.begin() : waiting;
    if (const auto client = given_up->lock()) client->stream.close();
    clients_.erase(given_up);
  }
  void serve(tcp::socket socket) {
    make_room();
    const auto client = std::make_shared<Client>(std::move(socket));
    clients_.push_back(client);
    start_coroutine(acceptor_.get_executor(), answer_requests(client, shared_));
  }

  tcp::acceptor acceptor_;
  std::shared_ptr<const Shared> shared_;
  std::vector<std::weak_ptr<Client>> clients_;  // the oldest first
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
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
  auto server = std::make_unique<Loopback>(io, std::move(site), limits);
  SWEEP_TRY(server->open(port));
  return server;
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
