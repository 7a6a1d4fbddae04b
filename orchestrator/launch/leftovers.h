// Leftovers: what a dead allocation of this machine may have left: processes that carry its mark, rendezvous
// folders.
#pragma once
#include <filesystem>
#include <string>

#include "schema/trial.h"

namespace sweep::launch {

// Ends every process that carries the allocation's mark (its agent included) and removes its rendezvous
// folders, of any incarnation. Called before an allocation of the same spool is started again and when one
// was lost. How many processes it ended. REQUIRES: no live agent serves this allocation; it would be ended.
i64 kill_orphans(const std::filesystem::path& spool, const std::string& allocation);

}  // namespace sweep::launch
