#include "worker/phantom/group_roles.h"

#include <algorithm>
#include <numeric>

namespace sweep::phantom {

GroupRoles::GroupRoles(std::vector<int> stand_ins) {
  const int ranks = static_cast<int>(stand_ins.size());
  for (int rank = 0; rank < ranks; ++rank)
    if (stand_ins[static_cast<std::size_t>(rank)] == rank) started_.push_back(rank);
  for (const int by : stand_ins) {
    const auto found = std::find(started_.begin(), started_.end(), by);
    stray_.push_back(found == started_.end());
    places_.push_back(stray_.back() ? 0 : static_cast<int>(found - started_.begin()));
  }
}

GroupRoles GroupRoles::all_started(int ranks) {
  std::vector<int> own(static_cast<std::size_t>(ranks));
  std::iota(own.begin(), own.end(), 0);
  return GroupRoles(std::move(own));
}

GroupRoles GroupRoles::alone(int ranks, int rank) {
  return GroupRoles(std::vector<int>(static_cast<std::size_t>(ranks), rank));
}

}  // namespace sweep::phantom
