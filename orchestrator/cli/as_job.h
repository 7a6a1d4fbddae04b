// AsJob: hands a sweep that is stored already to a small Slurm job that runs it, where login nodes end what lingers.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/cli/command.h"
#include "orchestrator/cli/launchers.h"

namespace sweep::cli {

// Submits the job that resumes the sweep with these further words, unless one of it waits or runs already. The exit
// code of this command. REQUIRES: nobody holds the lease.
int hand_to_job(Io&, const std::string& partition, const std::string& db, const std::string& sweep,
                const LaunchChoice&, std::vector<std::string> words);

// Cancels the sweep's orchestrator while it waits in Slurm's queue. True: there was one.
Expected<bool> cancel_waiting_job(Io&, const std::string& db, const std::string& sweep);

}  // namespace sweep::cli
