#include "orchestrator/import/known_file.h"

namespace sweep::imports {

const KnownFile& playbook() {
  static const KnownFile known{"the Ultra-Scale Playbook's chart",
                               {"model", "nodes", "dp", "tp", "pp", "gas", "mbs", "gbs", "zero", "status",
                                "mfu_pct", "tok_s_gpu", "mem_gb"},
                               {{"hardware", "h100-sxm-80gb"},
                                {"seq_len", "4096"},
                                {"precision", "bf16_master"},
                                {"grad_dtype", "fp32"}},
                               {{"1B", "playbook-1b"}, {"8B", "playbook-8b"}}};
  return known;
}

}  // namespace sweep::imports
