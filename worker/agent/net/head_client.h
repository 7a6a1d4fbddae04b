// HeadClient: how a node agent gets to its head agent: it connects, checks that the head knows the secret
// too, and proves its own knowledge. Blocking and bounded in time; done before the event loop starts.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "worker/agent/net/interface.h"
#include "worker/agent/net/peer_connection.h"
#include "worker/agent/net/secret.h"

namespace sweep::agent {

// A checked JoinLine.
struct Join {
  std::string address;
  int port = 0;
  std::optional<Secret> secret;
  i64 node = 0;
};
Expected<Join> read_join(int fd);
std::string join_line(const Join&);  // the line for read_join()

struct HeadClient {
  std::shared_ptr<PeerConnection> link;
  // Our end of the connection.
  Endpoint here;
};
Expected<HeadClient> connect_to_head(boost::asio::io_context& io, const Join&, double lease_s,
                                     const NodeHello& hello);

}  // namespace sweep::agent
