// RankPlace: the GPUs that a rank sees on its node and the cores that it keeps to.
#pragma once
#include "base/expected.h"
#include "schema/rank_launch.h"

namespace sweep {

// Orders GPUs by PCI address, as NVML does. Where other attempts may run beside this one, the process then
// sees its attempt's GPUs only and stays on its own cores. REQUIRES: no CUDA call and no second thread yet.
Expected<void> keep_to_place(const RankLaunch&);

}  // namespace sweep
