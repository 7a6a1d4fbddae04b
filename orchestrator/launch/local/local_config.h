// LocalConfig: the launcher `local`, which runs trials on this machine.
#pragma once
#include "orchestrator/launch/launch_config.h"

namespace sweep::launch {

Expected<std::unique_ptr<LaunchConfig>> configure_local(const LaunchSettings&, i64 existing_job);

}  // namespace sweep::launch
