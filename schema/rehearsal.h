// A rehearsal runs a sweep's trials on phantom GPUs (docs/phantom.md). Its bytes come from the real
// allocator, its times from a model, so its results are kept apart from measurements: in a sweep of their
// own, whose name says it.
#pragma once
#include <string>
#include <string_view>

#include "schema/attempt.h"

namespace sweep {

inline constexpr std::string_view kRehearsalSuffix = ".rehearsal";
inline constexpr std::string_view kRehearsalLauncher = "rehearsal";  // launcher of its allocations

// The note on every page and under every table of a rehearsal.
inline constexpr std::string_view kRehearsedNote =
    "REHEARSED on phantom GPUs: bytes are those of the real allocator, times are modelled; no GPU was "
    "measured";

// A rehearsal measures the same thing at every step, so a few of them are enough. Commands keep the grid's plan.
inline constexpr MeasurePlan kRehearsalMeasure{2, 2, 1};

inline bool is_rehearsal(std::string_view sweep) {
  return sweep.ends_with(kRehearsalSuffix);
}
inline std::string rehearsal_of(std::string_view sweep) {
  return std::string(sweep) + std::string(kRehearsalSuffix);
}

}  // namespace sweep
