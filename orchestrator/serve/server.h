// Server: a few documents over HTTP on this machine's loopback address, for clients that know the token in
// the address. It owns sockets and no data. It refuses methods other than GET and HEAD, foreign Host names,
// long headers and idle clients.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "schema/outcome.h"

namespace sweep::serve {

struct Document {
  std::string type;                         // application/json, ...
  std::shared_ptr<const std::string> body;  // shared by the answers under way
  std::string version;                      // another one for another body
};
// The document behind the token and a slash ("" is the first page). An empty body: there is none of this
// name. Errors are answered as 500 with the sentence.
using Site = std::function<Expected<Document>(std::string_view name)>;

struct Limits {
  std::size_t header_bytes = 8192;
  int connections = 64;  // beyond: the one that has waited longest without a request is closed
  std::chrono::milliseconds silence{
      15000};  // milliseconds for a whole request, for the client to take an answer, and between requests
};

class Server {
 public:
  // port 0: a free one. Error: the port is taken, or may not be used.
  static Expected<std::unique_ptr<Server>> listen(boost::asio::io_context&, int port, Site, Limits);
  virtual ~Server() = default;
  virtual int port() const = 0;
  virtual std::string address() const = 0;  // http://127.0.0.1:PORT/TOKEN/: a secret, never to be logged
};

// Serves until SIGINT or SIGTERM. `ready` is told the address once connections are taken.
Expected<void> serve_until_signal(int port, const Site&,
                                  const std::function<void(const std::string& address)>& ready);

// Whether two texts are the same, in a time that does not tell where they differ.
bool same_secret(std::string_view, std::string_view);
// Whether a Host header names this machine's loopback: a page of another name that resolves to it does not
// pass.
bool names_loopback(std::string_view host);

}  // namespace sweep::serve
