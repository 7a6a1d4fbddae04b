// Finds processes by their mark, ends them, and waits until none is found.
#include "orchestrator/launch/leftovers.h"

#include "runtime/attempt_token.h"

namespace sweep::launch {

i64 kill_orphans(const std::filesystem::path& spool, const std::string& allocation) {
  return end_marked_processes(allocation_key(allocation, spool), true);
}

}  // namespace sweep::launch
