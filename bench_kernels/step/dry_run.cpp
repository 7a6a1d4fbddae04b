#include "bench_kernels/step/dry_run.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/model/positions.h"
#include "bench_kernels/model/routing.h"
#include "bench_kernels/parallel/checkpoint_file.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/parallel/weights_file.h"
#include "bench_kernels/shape/device_memory.h"
#include "bench_kernels/shape/step_memory.h"
#include "bench_kernels/step/train_step.h"
#include "schema/codec.h"
#include "schema/rank_variables.h"

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

struct Peak {
  i64 bytes = 0;
  memory::CachingUse caching;
  parallel::ModelState::Bytes states;      // bytes of the states that are there at the peak
  std::vector<memory::LiveBlocks> blocks;  // filled if the caller asked for them
};

i64 limit_of(const Trial& trial) {
  return shape::allocator_limit(trial).value_or(std::numeric_limits<i64>::max());
}

// Sums over all chunks. Gradients come and go in a step: those that are there at its fullest moment count.
parallel::ModelState::Bytes states_at_peak(const TrainStep& step, const memory::BlockTrace& trace) {
  parallel::ModelState::Bytes states;
  for (const parallel::ModelState* state : step.states()) {
    const auto bytes = state->bytes();
    states.weights += bytes.weights, states.optimizer += bytes.optimizer;
    states.gradients += trace.bytes_at_peak(state->gradients());
  }
  return states;
}

Peak peak_of_rank(const Trial& trial, i64 rank, i64 workspace, bool tensors) {
  const i64 before = memory::stats(c10::DeviceType::Meta).current;
  memory::reset_peak(c10::DeviceType::Meta);
  const auto dims = shape::ParallelDims::make(trial);
  TORCH_CHECK(dims.has_value(), dims.error().message);
  const parallel::Mesh mesh = parallel::pretend(*dims, rank);
  memory::BlockTrace trace(c10::DeviceType::Meta);
  TrainStep step(trial, at::kMeta, mesh, nullptr);
  if (trial.weights_load != WeightsLoad::kNone) {
    parallel::WeightsFile file(
        step.states(),
        {.kind = trial.weights_load, .form = trial.weights_file, .first = rank == 0, .reads = false});
    file.write();
    file.load();
  }
  parallel::ModelState::Bytes states;
  for (int i = 0; i < 2; ++i) {
    trace.mark();
    step.run();
    if (i == 0) states = states_at_peak(step, trace);  // the peak is there in the first step
  }
  if (trial.eval_batch_size > 0) step.evaluate();
  if (trial.checkpoint != CheckpointKind::kNone)
    parallel::CheckpointFile(step.states(), {.kind = trial.checkpoint, .writes = false}).begin();
  const i64 peak = memory::stats(c10::DeviceType::Meta).peak - before;
  return {peak, trace.through_caching(workspace, limit_of(trial)), states,
          tensors ? trace.at_peak() : std::vector<memory::LiveBlocks>{}};
}

// The rank of an expert group that gets most rows of a skewed routing.
i64 fullest_expert_rank(const Trial& trial) {
  if (trial.ep == 1 || trial.routing != Routing::kSkewed) return 0;
  model::Options options;
  options.routing = trial.routing, options.hot_percent = trial.hot_percent;
  std::vector<i64> rows(static_cast<std::size_t>(trial.ep), 0);
  for (i64 cp = 0; cp < trial.cp; ++cp) {
    const auto positions = model::local_positions(trial.seq_len, cp, trial.cp);
    for (const i64 expert : model::forced_experts(trial.spec, options, positions, /*batch=*/1))
      ++rows[static_cast<std::size_t>(expert / (trial.spec.experts / trial.ep))];
  }
  return std::max_element(rows.begin(), rows.end()) - rows.begin();
}

// Ranks differ by their stage of the pipeline, and by their experts where routing is skewed: the fullest counts.
std::vector<Peak> peaks_of_stages(const Trial& trial, i64 workspace, bool tensors) {
  std::vector<Peak> peaks;
  const i64 expert = fullest_expert_rank(trial);
  for (i64 stage = 0; stage < trial.pp; ++stage) {
    const shape::ParallelDims dims{trial.dp, trial.tp, trial.pp, trial.cp, trial.ep, trial.dp};
    const shape::Place place{0, expert % trial.cp, expert / trial.cp, stage};
    peaks.push_back(peak_of_rank(trial, dims.rank_at(place), workspace, tensors));
  }
  return peaks;
}

std::vector<LiveTensors> listed(const std::vector<memory::LiveBlocks>& blocks) {
  std::vector<LiveTensors> list;
  for (const auto& [bytes, count, lasting] : blocks) list.push_back({bytes, count, lasting});
  return list;
}

// Adds what the caching allocator of a GPU does with the blocks of each stage.
void add_caching(DryRunAnswer& answer, const Trial& trial, const std::vector<Peak>& peaks) {
  for (const Peak& peak : peaks) {
    const memory::CachingUse& use = peak.caching;
    answer.reserved_bytes.push_back(use.peak_reserved), answer.alloc_retries.push_back(use.retries);
    if (use.refused == 0 || answer.refused) continue;
    answer.refused =
        DryRunRefusal{&peak - peaks.data(), use.refused, use.allocated, use.reserved, limit_of(trial)};
  }
}

DryRunAnswer answer_of(const Trial& trial, Backend backend, bool tensors) {
  const bool cuda = backend == Backend::kCuda;
  const i64 workspace = cuda ? static_cast<i64>(shape::library_workspace(trial)) : 0;
  const std::vector<Peak> peaks = peaks_of_stages(trial, workspace, tensors);
  DryRunAnswer answer{.trial = trial_id(trial), .backend = cuda ? "cuda" : "cpu"};
  std::vector<i64>& bytes = answer.peak_bytes;
  for (const Peak& peak : peaks) {
    bytes.push_back(peak.bytes + workspace);
    const auto& states = peak.states;
    answer.peak_parts.push_back({states.weights, states.gradients, states.optimizer, workspace,
                                 peak.bytes - states.weights - states.gradients - states.optimizer});
  }
  const auto fullest = std::max_element(bytes.begin(), bytes.end());
  answer.peak_rank_bytes = *fullest;
  const auto variables = rank_variables_from(trial.env);
  const bool modelled = variables && !change_the_allocator(*variables);
  if (cuda && modelled) add_caching(answer, trial, peaks);
  if (cuda && !modelled) answer.not_modelled = "env changes what the allocator reserves";
  if (tensors) answer.peak_tensors = listed(peaks[static_cast<size_t>(fullest - bytes.begin())].blocks);
  return answer;
}

}  // namespace

Expected<DryRunAnswer> dry_run(const Trial& trial, Backend backend, bool tensors) {
  const auto type = backend == Backend::kCuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
  if (const auto sentence = unsupported(trial, type)) return fail(*sentence);
  const PathScope path(backend);
  memory::install(c10::DeviceType::Meta);
  try {
    return answer_of(trial, backend, tensors);
  } catch (const c10::Error& e) {
    return fail(std::string("the dry run failed: ") + e.what_without_backtrace());
  }
}

Expected<std::string> dry_run_line(const Trial& trial, Backend backend, bool tensors) {
  return dry_run(trial, backend, tensors).map(to_text<DryRunAnswer>);
}

}  // namespace sweep::step
