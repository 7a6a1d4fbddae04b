// The Slurm launcher: a batch launcher (batch_launcher.h) over SlurmScheduler (slurm_scheduler.h).
#pragma once
#include <memory>

#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/slurm/slurm_options.h"
#include "orchestrator/launch/slurm/slurm_script.h"

namespace sweep::launch {

std::unique_ptr<Launcher> make_slurm(boost::asio::io_context&, SlurmOptions, Programs, Launcher::Sink,
                                     std::unique_ptr<Commands> = nullptr);

}  // namespace sweep::launch
