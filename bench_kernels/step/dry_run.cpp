#include "bench_kernels/step/dry_run.h"

#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/parallel/mesh.h"
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

}  // namespace

Expected<std::string> dry_run_line(const Trial& trial, Backend backend) {
  const auto type = backend == Backend::kCuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
  if (const auto sentence = unsupported(trial, type)) return fail(*sentence);
  const PathScope path(backend);
  memory::install(c10::DeviceType::Meta);
  try {
    const i64 peak = peak_of_rank(trial, 0);
    return dump({{"trial", trial_id(trial)},
                 {"backend", backend == Backend::kCuda ? "cuda" : "cpu"},
                 {"peak_bytes", {peak}},
                 {"peak_rank_bytes", peak}});
  } catch (const c10::Error& e) {
    return fail(std::string("the dry run failed: ") + e.what_without_backtrace());
  }
}

}  // namespace sweep::step
