#include "orchestrator/predict/product_reach.h"

#include <algorithm>
#include <array>

namespace sweep::predict {
namespace {

struct Reach {
  std::string_view hardware;
  double share;
};

// "Maximum achievable matmul FLOPS" in bf16 over the peak, by torch.matmul (Stas Bekman's Machine Learning Engineering,
// compute/accelerator/README.md of github.com/stas00/ml-engineering at 744d01e, 2026): 271.2 of 312 on A100, 794.5 of 989
// on H100 ("H200 is the same"), 1,745 of 2,250 on B200, 1,769 on B300, 1,822 of 2,500 on GB200. GB300 has the chip of B300
// and was not measured. Its table of fp8 is not used: rates of NeMo on H100 (sweeps/data/published_training.csv) are
// those of products that reach as large a share of the peak of fp8 as of that of 16 bits.
constexpr std::array kMeasured{
    Reach{"a100-40gb", 0.869},     Reach{"a100-80gb", 0.869},   Reach{"h100-sxm-80gb", 0.803},
    Reach{"h100-sxm-96gb", 0.803}, Reach{"h200-141gb", 0.803},  Reach{"b200-180gb", 0.776},
    Reach{"b300-288gb", 0.786},    Reach{"gb200-186gb", 0.729}, Reach{"gb300-288gb", 0.786},
    Reach{"mi300x-192gb", 0.514},  Reach{"mi355x-288gb", 0.68},
};

}  // namespace

double product_reach(std::string_view hardware) {
  const auto* found = std::ranges::find(kMeasured, hardware, &Reach::hardware);
  return found == kMeasured.end() ? 0 : found->share;
}

}  // namespace sweep::predict
