#include "bench_kernels/shape/around_step.h"

#include <fmt/format.h>

#include "base/text.h"
#include "bench_kernels/shape/adapters.h"
#include "bench_kernels/shape/byte_pairs.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/optimizer_states.h"
#include "bench_kernels/shape/quantized_base.h"

namespace sweep::shape {
namespace {

std::optional<std::string> checkpoint_objection(const Trial& t) {
  if (t.checkpoint == CheckpointKind::kNone) return {};
  if (t.optimizer == OptimizerKind::kAdamw8bit || t.optimizer == OptimizerKind::kAdafactor)
    return fmt::format(
        "checkpoint {} with optimizer {}: its state is that of blocks, rows and columns, not of each "
        "parameter; use "
        "another optimizer, or checkpoint none.",
        t.checkpoint, t.optimizer);
  if (t.offload == Offload::kDisk || t.offload == Offload::kDiskParameters)
    return fmt::format(
        "checkpoint {} with offload {}: the optimizer's states are in a file already; use offload "
        "optimizer, or "
        "checkpoint none.",
        t.checkpoint, t.offload);
  if (t.checkpoint == CheckpointKind::kFull && t.tp * t.pp * t.ep > 1)
    return fmt::format(
        "checkpoint full with tp {}, pp {}, ep {}: rank 0 gathers what its data-parallel ranks hold, and "
        "other ranks "
        "hold other tensors; use checkpoint sharded.",
        t.tp, t.pp, t.ep);
  return {};
}

std::optional<std::string> load_objection(const Trial& t) {
  if (t.weights_load != WeightsLoad::kNone && t.offload == Offload::kDiskParameters)
    return fmt::format(
        "weights_load {} with offload {}: the parameters are in a file of their own already; use offload "
        "parameters, or weights_load none.",
        t.weights_load, t.offload);
  if (t.weights_load == WeightsLoad::kNone || t.tp * t.pp * t.ep == 1) return {};
  return fmt::format(
      "weights_load {} with tp {}, pp {}, ep {}: the file has whole tensors, and the ranks that read it hold "
      "parts of "
      "them; use dp, cp and zero.",
      t.weights_load, t.tp, t.pp, t.ep);
}

std::optional<std::string> evaluation_objection(const Trial& t) {
  if (const i64 rows = t.eval_batch_size * (t.seq_len / t.cp); t.sp && rows % t.tp != 0)
    return fmt::format(
        "eval_batch_size {} x seq_len {} / cp {} is not a multiple of tp {}, by which sp splits the rows; "
        "take another eval_batch_size.",
        t.eval_batch_size, t.seq_len, t.cp, t.tp);
  if (t.eval_metrics == EvalMetrics::kLoss) return {};
  if (t.eval_batch_size == 0)
    return fmt::format("eval_metrics {} without an evaluation: set eval_batch_size.", t.eval_metrics);
  if (t.cp > 1)
    return fmt::format(
        "eval_metrics {} with cp {}: a rank has some positions of each sequence, and the metrics read it "
        "whole; "
        "use dp, tp or pp.",
        t.eval_metrics, t.cp);
  return {};
}

std::optional<std::string> data_objection(const Trial& t) {
  if (t.data == DataSource::kNone) {
    static const Trial untouched;
    if (t.data_ahead == untouched.data_ahead) return {};
    return fmt::format("data_ahead {} with data none: nothing is read; leave data_ahead out.", t.data_ahead);
  }
  if (!t.lengths.empty())
    return fmt::format("data {} with lengths: the file has whole sequences; use data none.", t.data);
  if (t.data == DataSource::kText && t.spec.vocab_size > BytePairs::kMostTokens)
    return fmt::format("data {}: its table has at most {} tokens, the model has {}; use data tokens.", t.data,
                       BytePairs::kMostTokens, t.spec.vocab_size);
  return {};
}

}  // namespace

bool surrounds(const Trial& t) {
  return t.checkpoint != CheckpointKind::kNone || t.eval_batch_size > 0 ||
         t.weights_load != WeightsLoad::kNone;
}

i64 load_bytes(const Trial& t) {
  if (t.weights_load == WeightsLoad::kNone) return 0;
  const StateTypes types = state_types(t);
  const bool rank0 = t.weights_load == WeightsLoad::kRank0,
             codes = t.weights_file == WeightsFileForm::kQuantized;
  const i64 readers = rank0 ? 1 : t.dp * t.cp / state_split(t).weights;
  const QuantizedModel quantized = quantized_model(t);
  const i64 plain = bytes_of(types.weights) * readers * (parameter_count(t.spec) - quantized.weights);
  if (codes) return plain + readers * quantized.bytes;
  return plain + bytes_of(types.compute) * (rank0 ? quantized_weights(t) : weights_read_to_quantize(t));
}

double compared_pairs(const Trial& t) {
  if (t.eval_metrics == EvalMetrics::kLoss) return 0;
  const auto tokens = static_cast<double>(t.seq_len);
  return static_cast<double>(t.eval_batches) * static_cast<double>(t.eval_batch_size) * tokens * tokens;
}

double data_tokens(const Trial& t) {
  if (t.data == DataSource::kNone) return 0;
  return static_cast<double>(t.grad_accum * t.micro_batch_size) * static_cast<double>(t.seq_len + 1);
}

double load_host_bytes(const Trial& t) {
  return t.weights_load == WeightsLoad::kRank0 ? static_cast<double>(load_bytes(t)) : 0;
}

i64 checkpoint_bytes(const Trial& t) {
  if (t.checkpoint == CheckpointKind::kNone) return 0;
  const StateTypes types = state_types(t);
  const i64 each =
      bytes_of(types.weights) + (types.master ? 4 : 0) + moments_of(t.optimizer) * bytes_of(types.moments);
  return each * (t.lora_rank > 0 ? adapter_parameter_count(t) : parameter_count(t.spec));
}

double checkpoint_host_bytes(const Trial& t) {
  const auto bytes = static_cast<double>(checkpoint_bytes(t));
  switch (t.checkpoint) {
    case CheckpointKind::kFull:
      return bytes;
    case CheckpointKind::kAsync:
      return bytes / static_cast<double>(t.nodes);
    case CheckpointKind::kNone:
    case CheckpointKind::kSharded:
      break;
  }
  return 0;
}

std::optional<std::string> around_objection(const Trial& t) {
  if (auto sentence = checkpoint_objection(t)) return sentence;
  if (auto sentence = evaluation_objection(t)) return sentence;
  if (auto sentence = data_objection(t)) return sentence;
  return load_objection(t);
}

std::optional<std::string> host_memory_objection(const Trial& t, double node_bytes) {
  if (load_host_bytes(t) > node_bytes)
    return fmt::format("weights_load rank0 takes {} of host memory on the node of rank 0, which has {}",
                       human_bytes(load_host_bytes(t)), human_bytes(node_bytes));
  const double needed = checkpoint_host_bytes(t);
  if (needed <= node_bytes) return {};
  return fmt::format(
      "checkpoint {} takes {} of host memory on {}, which has {}", t.checkpoint, human_bytes(needed),
      t.checkpoint == CheckpointKind::kFull ? "the node of rank 0" : "a node", human_bytes(node_bytes));
}

}  // namespace sweep::shape
