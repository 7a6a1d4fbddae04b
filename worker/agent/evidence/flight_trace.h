// FlightTrace: what NCCL's flight recorder (LibTorch's, as JSON) says of one rank: per group how many collectives it has
// begun and finished, and the first one that it waits in. Pure; any bytes are read, and what is not understood is left out.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/trial.h"

namespace sweep::agent {

struct FlightTrace {
  struct Waiting {
    i64 number =
        0;  // of the collective in its group, from 1; of a message its place among the group's operations
    std::string operation;    // all_reduce, send, ...
    std::optional<i64> peer;  // of a message: the other rank, as the world counts
  };
  struct Group {
    std::string label;        // its dimension: dp, tp, ...
    std::vector<i64> ranks;   // its members, as the world counts them
    i64 begun = 0, done = 0;  // numbers of the last collectives
    std::string last;         // the last one begun
    std::optional<Waiting> waits;
  };
  std::map<std::string, Group> groups;  // by NCCL's name of the group
  bool empty() const { return groups.empty(); }
};

FlightTrace read_flight_trace(std::string_view json);
nlohmann::json to_json(const FlightTrace&);  // a list of groups

}  // namespace sweep::agent
