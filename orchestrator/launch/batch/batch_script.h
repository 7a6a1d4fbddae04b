// The first lines of a batch script, for every scheduler.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::launch {

// mark: begins a line that the scheduler reads ("#SBATCH", "#$"). A directive is one line: a line break in it would start a
// line of shell, so a control character anywhere is an error.
Expected<std::string> batch_script_head(std::string_view mark, const std::vector<std::string>& directives);

}  // namespace sweep::launch
