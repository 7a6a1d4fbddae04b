// FlightDoor: answers the agent's request for NCCL's flight recorder while the rank itself may hang in a
// collective or in the driver. It owns a pipe and a thread that waits at it; each byte is answered with a
// file (spool.h). It knows nothing of what the recorder says.
#pragma once
#include <string>
#include <thread>

#include "schema/rank_launch.h"

namespace sweep::rank {

class FlightDoor {
 public:
  // A pipe that cannot be made leaves the rank without a door: its flight recorder is not read then.
  FlightDoor(const RankLaunch&, std::string (*trace)());
  ~FlightDoor();
  FlightDoor(const FlightDoor&) = delete;
  FlightDoor& operator=(const FlightDoor&) = delete;

 private:
  int pipe_ = -1;
  std::thread waiting_;
};

}  // namespace sweep::rank
