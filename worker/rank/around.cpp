#include "worker/rank/around.h"

#include <algorithm>
#include <chrono>

#include "base/proc.h"
#include "bench_kernels/parallel/checkpoint_file.h"
#include "bench_kernels/parallel/weights_file.h"

namespace sweep::rank {
namespace {

using Clock = std::chrono::steady_clock;

i64 ns_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}
i64 ns_since(Clock::time_point begin) {
  return ns_between(begin, Clock::now());
}

}  // namespace

std::optional<i64> host_limit(const Attempt& attempt, bool one_rank) {
  const Trial& t = attempt.trial;
  auto limit = t.host_memory_cap_bytes;
  if (const auto left = attempt.is_rehearsal() ? std::nullopt : proc::memory_available())
    limit = std::min(limit.value_or(*left), *left);
  if (limit && !one_rank) *limit /= t.gpus_per_node;
  return limit;
}

void load_weights(const Attempt& attempt, bool first_rank, step::TrainStep& step,
                  const std::function<void()>& meet, ProgressWriter& progress, AroundStep& around) {
  const Trial& t = attempt.trial;
  if (t.weights_load == WeightsLoad::kNone) return;
  progress.phase(Phase::kLoad);
  const bool reads = !attempt.is_rehearsal();
  parallel::WeightsFile file(step.states(),
                             {.kind = t.weights_load,
                              .form = t.weights_file,
                              .first = first_rank,
                              .folder = attempt.checkpoint_folder,
                              .reads = reads,
                              .host_limit = host_limit(attempt, t.weights_load == WeightsLoad::kRank0),
                              .beat = [&] { progress.part(Part::kNone); }});
  file.write();
  if (reads) meet();
  const auto began = Clock::now();
  file.load();
  if (reads) meet();  // the last values may be on their way to the GPU
  around.load_bytes = file.bytes();
  around.load_host_bytes = file.host_bytes();
  if (reads) around.load_ns = ns_since(began);
}

void evaluate(const Attempt& attempt, step::TrainStep& step, Device& device,
              const std::function<void()>& meet, ProgressWriter& progress, AroundStep& around) {
  if (attempt.trial.eval_batch_size == 0) return;
  progress.phase(Phase::kEvaluation);
  if (!attempt.is_rehearsal()) meet();  // the first stages of a pipeline may be in their last step still
  device.begin_stretch();
  const step::Evaluation seen = step.evaluate(!attempt.is_rehearsal());
  around.eval_peak_bytes = device.peak_of_stretch();
  if (seen.tokens > 0) around.eval_tokens = seen.tokens;
  if (attempt.is_rehearsal()) return;  // phantom GPUs compute nothing
  around.eval_ns = seen.ns;
  if (seen.tokens > 0) around.eval_loss = seen.loss;
  if (attempt.trial.eval_metrics == EvalMetrics::kLoss) return;
  if (seen.text) {
    around.eval_metrics_ns = seen.text->ns;
    around.eval_bleu = seen.text->bleu, around.eval_rouge_l = seen.text->rouge_l;
  }
  meet();
}

void write_checkpoint(const Attempt& attempt, step::TrainStep& step, ProgressWriter& progress,
                      AroundStep& around) {
  const Trial& t = attempt.trial;
  if (t.checkpoint == CheckpointKind::kNone) return;
  progress.phase(Phase::kCheckpoint);
  const bool writes = !attempt.is_rehearsal();
  parallel::CheckpointFile checkpoint(
      step.states(), {.kind = t.checkpoint,
                      .folder = attempt.checkpoint_folder,
                      .writes = writes,
                      .host_limit = host_limit(attempt, t.checkpoint == CheckpointKind::kFull),
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
  const i64 written = ns_between(began, checkpoint.on_disk());  // async: a step runs longer
  const bool async = t.checkpoint == CheckpointKind::kAsync;
  around.checkpoint_stall_ns = async ? stalled : written;
  // A small one is on disk before begin() returns.
  around.checkpoint_ns = std::max(written, *around.checkpoint_stall_ns);
}

}  // namespace sweep::rank
