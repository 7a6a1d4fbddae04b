// The options that a sweep keeps in the database, so that it can be resumed without its grid file. One codec:
// the store writes and reads the column sweep.options_json by it, and hands on this struct.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "schema/attempt.h"
#include "schema/launch_settings.h"
#include "schema/strategy.h"

namespace sweep {

// Options of a sweep. If one is nullopt or empty, the sweep does not state it, and the reader's default
// holds.
struct SweepOptions {
  // Its results come from a file; nothing of it runs here.
  bool imported = false;
  // Version and build of the program that made the sweep.
  std::string build;
  std::string launcher;
  // The section `launch` of the grid.
  std::optional<LaunchSettings> launch;
  std::optional<MeasurePlan> measure;
  std::optional<i64> retries_crash, retries_hang, retries_timeout, retries_infra;
  std::optional<double> trial_seconds, hang_seconds, start_seconds, gpu_hours;
  // The limit in USD from which `gpu_hours` was computed; nullopt: the limit was given in GPU-hours.
  std::optional<double> usd;
  std::optional<i64> slots;
  std::string start, screen;
  // The most ranks of a trial in a rehearsal.
  std::optional<i64> rehearse_ranks;
  // The sweep whose ranking this one measures again.
  std::string confirms;
  // One of schema/strategies.def; what follows belongs to it. Empty: every trial is run.
  std::string strategy;
  std::optional<i64> max_trials, at_once;
  std::optional<double> least_gain, audit;
  bool auto_micro_batch = false;
  std::optional<bool> history, skip_recompute;
  bool operator==(const SweepOptions&) const = default;
};

// JSON text with sorted keys; what is absent is left out.
std::string to_text(const SweepOptions&);
// Empty text: no options. Unknown keys are ignored, wrong types refused.
Expected<SweepOptions> sweep_options_from(std::string_view text);

void keep_strategy(const Strategy&, SweepOptions&);
Strategy kept_strategy(const SweepOptions&);

}  // namespace sweep
