// Capture: runs a companion program for its standard output, with a limit of time and size.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"

namespace sweep::launch {

// Error: it cannot be started, does not end in time (it is killed), ends with another code than 0, or says
// too much.
Expected<std::string> capture(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                              double timeout_s = 30, std::size_t max_bytes = 1 << 20);

}  // namespace sweep::launch
