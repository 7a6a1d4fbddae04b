// Finds the answers of programs on other machines between the lines that shells and launchers add.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/launch/finding.h"

namespace sweep::launch {

// The first line that is not blank, without trailing blanks.
std::string first_line(const std::string& text);
// Of each line that holds a JSON object.
std::vector<Expected<NodeProbe>> probes_in(const std::string& text);
bool any_bad(const std::vector<Finding>&);

}  // namespace sweep::launch
