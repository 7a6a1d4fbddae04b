// The dry run's input and output: trials as JSON lines in, one JSON line out for each, in order.
#pragma once
#include <iosfwd>

#include "base/expected.h"

namespace sweep::rank {

// A trial that the step refuses gets {"trial": id, "error": sentence}; the first line that is no trial ends
// it, with an error that names the line. `tensors`: see step::dry_run_line.
Expected<void> dry_run(std::istream& trials, std::ostream& peaks, bool cuda, bool tensors);

}  // namespace sweep::rank
