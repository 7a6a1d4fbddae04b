#include "bench_kernels/step/dry_run.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/step/train_step.h"
#include "schema/codec.h"

namespace sweep::step {

namespace {

// The plain path for the length of a dry run on behalf of CUDA.
class PathScope {
 public:
  explicit PathScope(Backend backend) : before_(kernels::path()) {
    if (backend == Backend::kCuda) kernels::set_path(kernels::Path::kPlain);
  }
  ~PathScope() { kernels::set_path(before_); }
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  kernels::Path before_;
};

// What LibTorch's cuBLAS handle takes from the caching allocator at its first product and keeps: 4096 KiB x 8 on compute
// capability 9.0 and 10.x, else 4096 KiB x 2 + 16 KiB x 8 (at::cuda::getChosenWorkspaceSize without
// CUBLAS_WORKSPACE_CONFIG). Unknown hardware: the larger.
i64 cublas_workspace(const Trial& trial) {
  const auto hardware = shape::find_hardware(trial.hardware);
  const std::string capability = hardware ? hardware->compute_capability : "";
  const bool large = capability.empty() || capability == "9.0" || capability.starts_with("10.");
  return large ? i64{4096 * 8} << 10 : i64{4096 * 2 + 16 * 8} << 10;
}

i64 peak_of_rank(const Trial& trial, i64 rank) {
  const i64 before = memory::stats(c10::DeviceType::Meta).current;
  memory::reset_peak(c10::DeviceType::Meta);
  const auto dims = shape::ParallelDims::make(trial);
  TORCH_CHECK(dims.has_value(), dims.error().message);
  const parallel::Mesh mesh = parallel::pretend(*dims, rank);
  TrainStep step(trial, at::kMeta, mesh, nullptr);
  for (int i = 0; i < 2; ++i) step.run();
  return memory::stats(c10::DeviceType::Meta).peak - before;
}

// Ranks differ by their stage of the pipeline only.
std::vector<i64> peaks_of_stages(const Trial& trial) {
  std::vector<i64> peaks;
  for (i64 stage = 0; stage < trial.pp; ++stage) {
    const shape::ParallelDims dims{trial.dp, trial.tp, trial.pp, trial.cp, trial.ep, trial.dp};
    peaks.push_back(peak_of_rank(trial, dims.rank_at({0, 0, 0, stage})));
  }
  return peaks;
}

}  // namespace

Expected<std::string> dry_run_line(const Trial& trial, Backend backend) {
  const auto type = backend == Backend::kCuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
  if (const auto sentence = unsupported(trial, type)) return fail(*sentence);
  const PathScope path(backend);
  memory::install(c10::DeviceType::Meta);
  try {
    auto peaks = peaks_of_stages(trial);
    if (backend == Backend::kCuda)
      for (i64& peak : peaks) peak += cublas_workspace(trial);
    return dump({{"trial", trial_id(trial)},
                 {"backend", backend == Backend::kCuda ? "cuda" : "cpu"},
                 {"peak_bytes", peaks},
                 {"peak_rank_bytes", *std::max_element(peaks.begin(), peaks.end())}});
  } catch (const c10::Error& e) {
    return fail(std::string("the dry run failed: ") + e.what_without_backtrace());
  }
}

}  // namespace sweep::step
