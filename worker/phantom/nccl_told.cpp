#include "worker/phantom/nccl_told.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "worker/phantom/export.h"

namespace sweep::phantom {
namespace {

std::atomic<int> on_nodes{0};

struct ToldGroups {
  std::mutex mutex;
  std::map<std::string, ToldGroup> by_name;
  std::optional<ToldGroup> next;
};
ToldGroups& told_groups() {
  static ToldGroups one;
  return one;
}

}  // namespace

// A rehearsal by roles says here that the communicators made next are of mirrors, on so many nodes; 0: of
// ranks that come.
PHANTOM_API void sweep_phantom_mirror(int nodes) {
  on_nodes = nodes;
}

// The same of a program that makes its groups itself: the one whose communicator has this id (128 bytes; null: the one
// that is made next) has so many ranks, this one's place is `rank` (-1: in none), and it lies on so many nodes.
// `stand_ins`: for each rank, the rank of the group that does its part (GroupRoles).
PHANTOM_API void sweep_phantom_mirror_group(const char* id, int ranks, int rank, int nodes,
                                            const int* stand_ins) {
  ToldGroup group{rank, nodes, GroupRoles(std::vector<int>(stand_ins, stand_ins + ranks))};
  ToldGroups& told = told_groups();
  const std::lock_guard lock(told.mutex);
  if (id == nullptr) {
    told.next = std::move(group);
    return;
  }
  ncclUniqueId copy{};
  std::memcpy(copy.internal, id, sizeof copy.internal);
  told.by_name.insert_or_assign(name_of(copy), std::move(group));
}

std::string name_of(const ncclUniqueId& id) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (const char byte : id.internal) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ull;
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(hash));
  return out;
}

std::optional<ToldGroup> told_group(const ncclUniqueId& id) {
  ToldGroups& told = told_groups();
  const std::lock_guard lock(told.mutex);
  const auto found = told.by_name.find(name_of(id));
  return found == told.by_name.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ToldGroup> next_told_group() {
  ToldGroups& told = told_groups();
  const std::lock_guard lock(told.mutex);
  return told.next;
}

int mirrored_on_nodes() {
  return on_nodes;
}

}  // namespace sweep::phantom
