#include "schema/progress.h"

#include <algorithm>
#include <cstring>

namespace sweep {

namespace {
constexpr std::array<std::string_view, 11> kPhases{"start",  "init",       "build",     "first_step",
                                                   "warmup", "step",       "report",    "done",
                                                   "load",   "evaluation", "checkpoint"};
}

std::string_view to_string(Phase phase) {
  const auto index = static_cast<std::size_t>(phase);
  return index < kPhases.size() ? kPhases[index] : "unknown";
}

std::optional<Phase> phase_from(std::string_view word) {
  const auto* const found = std::find(kPhases.begin(), kPhases.end(), word);
  if (found == kPhases.end()) return std::nullopt;
  return static_cast<Phase>(found - kPhases.begin());
}

const char* name_of(Collective kind) {
  static constexpr std::array<const char*, kCollectives> kNames{
      "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send", "recv", "barrier", "join"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

const char* name_of(Part part) {
  static constexpr std::array<const char*, 5> kNames{"none", "forward", "backward", "optimizer",
                                                     "communication"};
  const auto index = static_cast<std::size_t>(part);
  return index < kNames.size() ? kNames[index] : "unknown";
}

CollectiveName CollectiveName::of(Collective kind, std::uint64_t number, std::string_view group) {
  CollectiveName name;
  name.what = number << 8 | (static_cast<std::uint64_t>(kind) + 1);
  std::memcpy(name.group.data(), group.data(), std::min(group.size(), sizeof name.group));
  return name;
}

std::string CollectiveName::text() const {
  if (none()) return "none";
  std::array<char, sizeof group> bytes{};
  std::memcpy(bytes.data(), group.data(), sizeof group);
  std::string of;
  for (const char c : bytes) {
    if (c == 0) break;
    of += c > ' ' && c <= '~' ? c : '?';
  }
  return std::string(name_of(static_cast<Collective>((what & 0xff) - 1))) + " " + std::to_string(what >> 8) +
         " of " + of;
}

}  // namespace sweep
