#include "worker/rank/around.h"

#include <algorithm>
#include <chrono>

#include "base/proc.h"
#include "bench_kernels/parallel/checkpoint_file.h"

namespace sweep::rank {
namespace {

using Clock = std::chrono::steady_clock;

i64 ns_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace

// full: rank 0 alone takes it.
std::optional<i64> host_limit(const Attempt& attempt) {
  const Trial& t = attempt.trial;
  auto limit = t.host_memory_cap_bytes;
  if (const auto left = attempt.is_rehearsal() ? std::nullopt : proc::memory_available())
    limit = std::min(limit.value_or(*left), *left);
  if (limit && t.checkpoint != CheckpointKind::kFull) *limit /= t.gpus_per_node;
  return limit;
}

void evaluate(const Attempt& attempt, step::TrainStep& step, Device& device, ProgressWriter& progress,
              AroundStep& around) {
  if (attempt.trial.eval_batch_size == 0) return;
  progress.phase(Phase::kEvaluation);
  device.begin_stretch();
  const step::Evaluation seen = step.evaluate();
  around.eval_peak_bytes = device.peak_of_stretch();
  around.eval_ns = seen.ns;
  if (seen.tokens == 0) return;
  around.eval_tokens = seen.tokens;
  around.eval_loss = seen.loss;
}

void write_checkpoint(const Attempt& attempt, step::TrainStep& step, ProgressWriter& progress,
                      AroundStep& around) {
  const Trial& t = attempt.trial;
  if (t.checkpoint == CheckpointKind::kNone) return;
  progress.phase(Phase::kCheckpoint);
  const bool writes = !attempt.is_rehearsal();
  parallel::CheckpointFile checkpoint(step.states(), {.kind = t.checkpoint,
                                                      .folder = attempt.checkpoint_folder,
                                                      .writes = writes,
                                                      .host_limit = host_limit(attempt),
                                                      .beat = [&] { progress.part(Part::kNone); }});
  const auto began = Clock::now();
  checkpoint.begin();
  const i64 stalled = ns_since(began);
  if (writes && t.checkpoint == CheckpointKind::kAsync) step.run();
  progress.phase(Phase::kCheckpoint);
  checkpoint.finish();
  around.checkpoint_bytes = checkpoint.bytes();
  around.checkpoint_host_bytes = checkpoint.host_bytes();
  if (!writes) return;
  around.checkpoint_ns = ns_since(began);
  around.checkpoint_stall_ns = t.checkpoint == CheckpointKind::kAsync ? stalled : *around.checkpoint_ns;
}

}  // namespace sweep::rank
