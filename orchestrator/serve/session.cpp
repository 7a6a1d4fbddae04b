#include "orchestrator/serve/session.h"

#include <array>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>

namespace sweep::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using Request = http::request<http::empty_body>;
using Response = http::response<http::span_body<const char>>;

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

class Session final : public Connection, public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket, const Shared& shared, std::function<void()> ended)
      : stream_(std::move(socket)), shared_(shared), ended_(std::move(ended)) {}
  ~Session() override { ended_(); }

  bool waits_for_request() const override { return reading_; }
  void close() override { stream_.close(); }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.header_bytes));
    parser_->body_limit(boost::none);  // a body is never read
    stream_.expires_after(shared_.limits.silence);
    reading_ = true;
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](beast::error_code error, std::size_t) { self->on_header(error); });
  }

 private:
  void on_header(beast::error_code error) {
    reading_ = false;
    if (error == http::error::header_limit)
      return write(plain(http::status::request_header_fields_too_large, "the request's header is too long"),
                   false);
    if (error && error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message)
      return write(plain(http::status::bad_request, "this is not HTTP"), false);
    if (error) return;  // gone or silent: the connection closes with this object
    const Request& request = parser_->get();
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    Answer answer = answer_to(request, has_body, shared_);
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
    stream_.expires_after(shared_.limits.silence);
    http::async_write(stream_, *response_,
                      [self = shared_from_this(), keep_alive](beast::error_code error, std::size_t) {
                        if (error) return;
                        if (keep_alive) return self->read();
                        self->stream_.socket().shutdown(boost::asio::socket_base::shutdown_send, error);
                        self->drain();
                      });
  }

  // Closing with unread bytes would reset the connection and take the answer with it.
  void drain() {
    stream_.async_read_some(boost::asio::buffer(scrap_),
                            [self = shared_from_this()](beast::error_code error, std::size_t n) {
                              self->drained_ += n;
                              if (!error && self->drained_ < kMostDrained) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  const Shared& shared_;
  std::function<void()> ended_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::optional<Response> response_;
  Answer answer_;
  std::array<char, 4096> scrap_{};
  std::size_t drained_ = 0;
  bool reading_ = false;
};

}  // namespace

std::weak_ptr<Connection> start_session(boost::asio::ip::tcp::socket socket, const Shared& shared,
                                        std::function<void()> ended) {
  const auto session = std::make_shared<Session>(std::move(socket), shared, std::move(ended));
  session->read();
  return session;
}

}  // namespace sweep::serve
