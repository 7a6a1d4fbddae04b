// Session: one connection, answered request after request until it closes, is idle for too long or fails.
// Private to serve/.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>

#include "orchestrator/serve/server.h"

namespace sweep::serve {

struct Shared {
  Site site;
  Limits limits;
  std::string token;
};

// A connection seen from outside.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual bool waits_for_request() const = 0;
  virtual void close() = 0;
};

// `ended` is called once, when the connection is gone, and keeps `shared` alive.
std::weak_ptr<Connection> start_session(boost::asio::ip::tcp::socket, const Shared& shared,
                                        std::function<void()> ended);

}  // namespace sweep::serve
