// Shortcuts: what a sweep did not measure to the end, and how often leaving it out was wrong, as sentences for
// `status` and `report`, and as figures for `status --json`.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "orchestrator/store/answers.h"

namespace sweep::answers {

// Trials that were stopped early and the time that it saved; audited pruning by rule (schema/audit.h). Empty:
// neither happened.
std::vector<std::string> shortcut_sentences(const store::Shortcuts&);
// The keys `stopped_early` and `audited` of docs/json.md.
nlohmann::json shortcuts_json(const store::Shortcuts&);

}  // namespace sweep::answers
