// What commands print with --json, one document each; schema/json/ holds the schema of each, docs/json.md
// explains them. Keys are always there; null: not measured, not known, or not so.
#pragma once
#include <nlohmann/json.hpp>

#include "orchestrator/cli/command.h"
#include "orchestrator/driver/doctor_rules.h"
#include "orchestrator/driver/selftest_results.h"

namespace sweep::cli {

// One line for each key, then a line end.
void print_document(Io&, const nlohmann::json&);
// One line on standard error: the kind, the message, and of the rest what is known.
void print_error(Io&, const Error&);

nlohmann::json doctor_json(const std::vector<driver::Finding>&, const driver::SelfTestResults& here);

}  // namespace sweep::cli
