// GridEngineConfig: the launcher `gridengine`: each allocation is one job on one host.
#pragma once
#include "orchestrator/launch/launch_config.h"

namespace sweep::launch {

Expected<std::unique_ptr<LaunchConfig>> configure_gridengine(const LaunchSettings&, i64 existing_job);

}  // namespace sweep::launch
