#include "orchestrator/launch/launch_config.h"

namespace sweep::launch {

Expected<Preview> LaunchConfig::preview(const AllocationRequest&, const Programs&) const {
  return fail("this launcher submits no scripts: there is nothing to show");
}

Expected<std::vector<Finding>> LaunchConfig::check(const CheckRequest&) const {
  return fail("this launcher has no nodes to check: `sweep doctor` without --on checks this machine");
}

}  // namespace sweep::launch
