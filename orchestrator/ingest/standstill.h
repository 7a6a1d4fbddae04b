// Standstill: which rank waits for which among ranks that hang, from the flight recorders that the agent read
// (its evidence, "ranks"). Pure; its input is not trusted. Private to ingest/.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "schema/records.h"

namespace sweep::ingest {

struct Standstill {
  // The one that the others wait for; absent: all have entered the operation, and it does not end.
  std::optional<i64> rank;
  // A sentence.
  std::string what;
};
// Absent: no rank reported that it waits in an operation.
std::optional<Standstill> standstill(std::span<const RankPosition> ranks);

}  // namespace sweep::ingest
