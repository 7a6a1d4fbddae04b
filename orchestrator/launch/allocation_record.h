// Allocation record: `allocation.json` in the spool of an allocation that can outlive the process that asked
// for it. It has the request, in one form for all launchers, and what its launcher needs to find the
// allocation again.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "orchestrator/launch/launcher.h"

namespace sweep::launch {

// `own`: an object, whose names must not be those of the request.
Expected<void> keep_record(const AllocationRequest&, std::string_view launcher, nlohmann::json own);
// An object. nullopt: there is none, or it is another launcher's. Error: it cannot be read, or is damaged.
Expected<std::optional<nlohmann::json>> read_record(const std::filesystem::path& spool,
                                                    std::string_view launcher);
// Whether this allocation may still live without an orchestrator: its record is there.
bool has_record(const std::filesystem::path& spool);
// The allocation is known to be over: no run looks for it again.
void drop_record(const std::filesystem::path& spool);
// Restores the request of then; id, spool, incarnation and offset are the caller's.
void restore(AllocationRequest&, const nlohmann::json& record);

}  // namespace sweep::launch
