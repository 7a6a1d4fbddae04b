// FlightTrace: what PyTorch's flight recorder (of NCCL or Gloo, as JSON) says of one rank: per group how many
// collectives it has begun and finished, and the first one that it waits in. Pure; any bytes are read, and
// what is not understood is left out.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/records.h"

namespace sweep::agent {

struct FlightTrace {
  struct Waiting {
    // Number of the collective in its group, from 1; for a message, its place among the group's operations.
    i64 number = 0;
    // The word for it: all_reduce, send, ...
    std::string operation;
    // The other rank of a message, as the world counts.
    std::optional<i64> peer;
  };
  struct Group {
    // Its dimension: dp, tp, ...
    std::string label;
    // Its members, as the world counts them.
    std::vector<i64> ranks;
    // Numbers of the last collectives.
    i64 begun = 0, done = 0;
    // The last one begun.
    std::string last;
    std::optional<Waiting> waits;
  };
  // The key is NCCL's name of the group.
  std::map<std::string, Group> groups;
  bool empty() const { return groups.empty(); }
};

FlightTrace read_flight_trace(std::string_view json);
std::vector<FlightGroup> groups_of(const FlightTrace&);

}  // namespace sweep::agent
