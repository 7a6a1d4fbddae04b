// Meeting: the address at which the processes of a command meet (MASTER_ADDR and MASTER_PORT). Rank 0
// reserves a free port on its node and tells the others: by a file where all are on one node, else by the
// attempt's rendezvous store.
#pragma once
#include <chrono>
#include <string>

#include "base/files.h"
#include "schema/rank_launch.h"

namespace sweep::command {

// Keeps a port from being given to anybody else. A socket is bound to it and never listens: with SO_REUSEADDR
// on both sides the trainer may bind and listen, while the kernel gives the port to no outgoing connection.
class ReservedPort {
 public:
  static Expected<ReservedPort> reserve();
  ReservedPort(ReservedPort&&) noexcept;
  ReservedPort& operator=(ReservedPort&&) = delete;
  ~ReservedPort();
  int number() const { return number_; }

 private:
  ReservedPort(int socket, int number) : socket_(socket), number_(number) {}
  int socket_ = -1, number_ = 0;
};

struct Meeting {
  std::string address;  // address of rank 0's node
  int port = 0;
};
// Rank 0 calls it; `port` is kept for as long as the command runs.
Expected<Meeting> announce_meeting(const RankLaunch&, const ReservedPort& port);
// Every other rank. Error: rank 0 said nothing in time.
Expected<Meeting> await_meeting(const RankLaunch&, std::chrono::milliseconds timeout);

}  // namespace sweep::command
