#include "orchestrator/launch/slurm/slurm.h"

#include "orchestrator/launch/batch/batch_launcher.h"
#include "orchestrator/launch/slurm/slurm_scheduler.h"

namespace sweep::launch {

std::unique_ptr<Launcher> make_slurm(boost::asio::io_context& io, SlurmOptions options, Programs programs,
                                     Launcher::Sink sink, std::unique_ptr<Commands> commands) {
  if (!commands) commands = std::make_unique<Commands>(io);
  const double longest_pause_s = *options.poll_seconds;
  return make_batch(
      io, std::make_unique<SlurmScheduler>(std::move(commands), std::move(options), std::move(programs)),
      longest_pause_s, std::move(sink));
}

}  // namespace sweep::launch
