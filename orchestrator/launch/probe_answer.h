// Finds the answers of programs on other machines between the lines that shells and launchers add.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/finding.h"

namespace sweep::launch {

// The first line that is not blank, without trailing blanks.
std::string first_line(const std::string& text);
// The answers of probes: one for each line that holds a JSON object.
std::vector<ProbeAnswer> probes_in(const std::string& text);
// The fault of the agent that answered, as the end of a sentence; nullopt: it is of this version, and its answer
// can be read.
std::optional<std::string> wrong_agent(const ProbeAnswer&, const std::string& version);
bool any_bad(const std::vector<Finding>&);

}  // namespace sweep::launch
