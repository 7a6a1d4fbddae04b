// FakeTrial: what a fake rank does once it is started. Its script is the trial's label "fake":
//   {"outcome": NAME, "rank": N (only this rank misbehaves), "phase": "init|first_step|step", "step_ms": 1,
//   "bytes": N}
// or, as a grid's `derive` can say it, a number (its outcome in kByNumber) with the labels "fake_step_ms" and
// "fake_rank" (only this rank misbehaves) and "fake_waits_percent" (of each step, on all ranks but that one).
// Names: ok oom host_oom crash_signal crash_exit exception hang hang_ignore_sigterm double_fork bare_daemon
// huge_log slow no_record bad_record record_then_hang nan_loss unsupported
// real (every rank becomes the sweep-rank beside this program).
#pragma once
#include "schema/attempt.h"
#include "schema/rank_launch.h"

namespace sweep::fake {

// Runs the script of this rank and writes its record; the exit code of the process.
int run_trial(const RankLaunch& launch);

}  // namespace sweep::fake
