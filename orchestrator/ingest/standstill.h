// Standstill: who waits for whom in ranks that hang, from the flight recorders that the agent read (its evidence, "ranks").
// Pure; what it is given is not trusted. Private to ingest/.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "schema/trial.h"

namespace sweep::ingest {

struct Standstill {
  std::optional<i64>
      rank;  // the one that the others wait for; absent: all have come, and the operation does not end
  std::string what;  // a sentence
};
// Absent: no rank said that it waits in an operation.
std::optional<Standstill> standstill(const nlohmann::json& ranks);

}  // namespace sweep::ingest
