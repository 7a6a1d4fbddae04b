// Shortcuts: what a sweep did not measure to the end, and how often leaving it out was wrong, as sentences for
// `status` and `report`, and as figures for `status --json`.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/store/store.h"

namespace sweep::cli {

// Trials that were stopped early and the time that it saved; audited pruning by rule (schema/audit.h). Empty:
// neither happened.
Expected<std::vector<std::string>> shortcuts(store::Store&, i64 sweep);
// The keys `stopped_early` and `audited` of docs/json.md.
Expected<nlohmann::json> shortcuts_json(store::Store&, i64 sweep);

}  // namespace sweep::cli
