// Session: one connection, answered request after request until it closes, falls silent or errs. Private to serve/.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <functional>

#include "orchestrator/serve/server.h"

namespace sweep::serve {

struct Shared {
  Site site;
  Limits limits;
  std::string token;
};

// `ended` is called once, when the connection is gone, and keeps `shared` alive.
void start_session(boost::asio::ip::tcp::socket, const Shared& shared, std::function<void()> ended);

}  // namespace sweep::serve
