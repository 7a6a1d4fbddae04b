// Shortcuts: what a sweep did not measure to the end, and how often leaving it out was wrong, as sentences for
// `status` and `report`.
#pragma once
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/store/store.h"

namespace sweep::cli {

// Trials that were stopped early and the time that it saved; audited pruning by rule (schema/audit.h). Empty:
// neither happened.
Expected<std::vector<std::string>> shortcuts(store::Store&, i64 sweep);

}  // namespace sweep::cli
