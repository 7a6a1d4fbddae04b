// Findings: what `sweep doctor` reports, and what the check of a launcher is asked.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "orchestrator/launch/programs.h"
#include "schema/records.h"

namespace sweep::launch {

enum class Health { kGood, kWarning, kBad };
constexpr std::string_view to_string(Health health) {
  return health == Health::kGood ? "ok" : health == Health::kWarning ? "warning" : "bad";
}

struct Finding {
  std::string what;
  Health health = Health::kGood;
  std::string detail;  // cause and way out of a warning or worse
};

// The requirements on a node, checked by its `sweep-agent --probe PATH...`, which runs between two instants
// of this machine's clock. Empty texts are not checked.
struct NodeWants {
  std::string node;      // its name, for people
  std::string version;   // version of this program
  std::string folder;    // must be writable there
  std::string file;      // written in that folder here a moment ago: must be there
  std::string rank;      // must be a program there
  std::string hardware;  // catalogue name; its GPUs must be there
  std::string working;   // working folder of the grid's command; must be there
  bool shared = false;   // the folder is this machine's own, seen from there
  std::int64_t asked_unix_ns = 0, answered_unix_ns = 0;
};

// The answer of a node's probe. The host and the version are read even where the rest is not: another build may
// state a member by another type.
struct ProbeAnswer {
  std::string host, version;  // empty: it states none
  Expected<NodeProbe> probe;
};

struct CheckRequest {
  Programs programs;             // programs of this machine; they need not exist
  std::filesystem::path db;      // path, absolute, that the database of a run would have
  std::string hardware = "cpu";  // hardware of the trial over the nodes
  i64 nodes = 2;
  std::string working_folder;  // working folder of the grid's command; empty: none is stated
  // Judges the answer of a node's probe.
  std::function<std::vector<Finding>(const ProbeAnswer&, const NodeWants&)> judge;
};

}  // namespace sweep::launch
