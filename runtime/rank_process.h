// Settings of a rank's own process: who ends it, where its output goes, which GPUs it sees and which cores it keeps to,
// and what the kernel counted for it.
#pragma once
#include "base/expected.h"
#include "schema/attempt.h"
#include "schema/rank_launch.h"
#include "schema/trial.h"

namespace sweep {

// Joins or leads the process group. First of all, so that the agent can end the rank from then on.
Expected<void> join_process_group(i64 pgid);
// Dies with the agent from now on (PDEATHSIG) and fails if the agent is gone already. REQUIRES: the agent is,
// or is about to become, this process's parent: after a fork from the zygote it waits for that. agent_pid 0:
// started by hand, nothing done.
Expected<void> follow_agent(i64 agent_pid);
// Standard output and error are appended to the rank's log file; standard input reads nothing.
Expected<void> redirect_output(const RankLaunch&);
// Orders GPUs by PCI address, as NVML does. Where other attempts may run beside this one, the process then
// sees its attempt's GPUs only and stays on its own cores. REQUIRES: no CUDA call and no second thread yet.
Expected<void> keep_to_place(const RankLaunch&);
void set_process_name(i64 rank);
// All of it, in order, for a rank that was executed: name, group, PDEATHSIG, output, place.
Expected<void> become_rank(const RankLaunch&);

// Reads its attempt_file. Error: the path and what is wrong with it.
Expected<Attempt> read_attempt(const RankLaunch&);

i64 usable_cores();  // counted by this process's affinity
// Intra-op threads of a rank: those of the trial; where a GPU's optimizer is updated on the host and the
// trial leaves them at 1, this rank's share of the cores.
i64 threads_of(const Trial&, i64 cores);

i64 age_ns();               // since the kernel started this process; resolution of a clock tick (10 ms)
i64 cpu_ns();               // user and system time of this process so far
i64 host_peak_rss_bytes();  // VmHWM; 0 if /proc does not say

}  // namespace sweep
