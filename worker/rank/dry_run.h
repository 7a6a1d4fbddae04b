// The dry run's input and output: trials as JSON lines in, one JSON line out for each, in order.
#pragma once
#include <iosfwd>

#include "schema/expected.h"

namespace sweep::rank {

// Stops at the first line that is no trial, or that the step refuses, with a sentence that names the line.
Expected<void> dry_run(std::istream& trials, std::ostream& peaks, bool cuda);

}  // namespace sweep::rank
