// Model states: in which types weights, gradients and optimizer state are kept, over how many ranks each is
// divided, and what that costs in bytes and in traffic. The one place that says so: the training step builds
// what state_types() answers, the planner counts with the same numbers.
#pragma once
#include <optional>
#include <string>

#include "schema/trial.h"

namespace sweep::shape {

enum class Number { kFp32, kBf16, kFp16 };
i64 bytes_of(Number);

// fp32: all in fp32. bf16: all in bf16. bf16_master and fp16: weights and gradients in the half type, an fp32
// copy that the optimizer updates beside them (Micikevicius et al. 2018, arXiv 1710.03740; DeepSpeed).
// fp8: as bf16_master, and the products of the blocks' dense linear layers on fp8 units (their factors are
// rounded for each product; nothing is kept in eight bits: Micikevicius et al. 2022, arXiv 2209.05433).
// bf16_mixed: fp32 all, and a bf16 copy of a block for as long as it is used (PyTorch FSDP's MixedPrecision).
// bf16_amp and fp16_amp: the same in either half type, and operators as autocast runs them (autocasts()).
struct StateTypes {
  Number compute = Number::kFp32;    // type of the values the kernels read, and of activations
  Number weights = Number::kFp32;    // type of the values that last from step to step
  Number gradients = Number::kFp32;  // accumulated and reduced in
  Number moments = Number::kFp32;
  bool master = false;  // fp32 values beside the weights
  // True if weights are stored in another type than kernels read, so each use makes a copy.
  bool casts() const { return compute != weights; }
};
StateTypes state_types(const Trial&);

// Whether norms, softmax, GELU and loss are computed on fp32 copies and all that autograd would save of an eager step
// is kept (torch.amp; kernels/autocast.h).
bool autocasts(const Trial&);
// Whether products make weights' gradients in the type of their factors, as eager autocast and fp8 units do, even where
// those are kept in fp32.
bool stages_products(const Trial&);
// Whether gradients are those of a scaled loss, whose steps may be skipped: fp16 in any form.
bool scales_loss(const Trial&);

// Whether weights last outside the device, and come for use: offload parameters and disk_parameters.
bool parameters_outside(const Trial&);

// Why precision, grad_dtype, zero, dp_shard and offload of this trial do not go together, as a sentence;
// nullopt: they do.
std::optional<std::string> states_unsupported(const Trial&);

// Over how many ranks each part of the state of a dense tensor is divided (Rajbhandari et al. 2020, arXiv
// 1910.02054: stage 1 the optimizer's, 2 gradients too, 3 weights too), and how many hold copies of a share.
struct StateSplit {
  i64 weights = 1, gradients = 1, optimizer = 1;
};
StateSplit state_split(const Trial&);

// Bytes per parameter that one rank keeps on its device from step to step; padding and step counts not
// included, and of moments in eight bits neither what is rounded up to blocks nor small tensors. The table of
// Rajbhandari et al. 2020, section 3, for the types above: 4/4/8, 2/2/4, 2/2/12.
struct StateBytes {
  double weights = 0, gradients = 0, optimizer = 0;
  double total() const { return weights + gradients + optimizer; }
};
StateBytes state_bytes(const Trial&);
// The same per parameter of the experts of all ranks: each is on one rank of ep, and what a stage shards is
// divided over expert_shard_ranks() of those that hold it.
StateBytes expert_state_bytes(const Trial&);
// Ranks over which a stage shards the tensors of a rank's experts: those of a shard set that hold them, dp_shard x cp / ep
// (split_not_built() refuses an ep that does not divide the set).
i64 expert_shard_ranks(const Trial&);

// A chunk of the model on a rank of the pipeline.
struct PipelinePlace {
  i64 rank = 0, chunk = 0;
};
// How often a step gathers the weights of a chunk at ZeRO 3: before each forward and each backward, whatever
// recompute_every is; where they are kept after forward, for each forward that finds no micro-batch in flight.
i64 weight_gathers(const Trial&, PipelinePlace = {});

// Whether backward gathers the next blocks when the gradient of the block at work is made, before its reduce-scatter
// (backward_prefetch post); else before that block's backward.
bool gathers_after_block(const Trial&);
// Blocks whose weights backward holds beside those of the block at work.
i64 blocks_ahead_in_backward(const Trial&);

// Bytes one rank sends in an optimizer step for gradients and values of `elements` dense numbers (padding
// included) by ring algorithms: data parallelism and ZeRO 1 two passes over them, ZeRO 2 one reduce-scatter
// each micro-step, ZeRO 3 its gathers and a reduce-scatter each micro-step (Rajbhandari et al. 2020, section 7).
// `shared`: those of them used by two groups (a tied table on one rank), kept gathered from forward to backward.
struct StateTraffic {
  double all_reduce = 0, reduce_scatter = 0, all_gather = 0;
  double total() const { return all_reduce + reduce_scatter + all_gather; }
  StateTraffic& operator+=(const StateTraffic& more) {
    all_reduce += more.all_reduce, reduce_scatter += more.reduce_scatter, all_gather += more.all_gather;
    return *this;
  }
};
StateTraffic state_traffic(const Trial&, double elements, double shared = 0, PipelinePlace = {});
// The traffic of numbers that are read and never updated (a frozen base): ZeRO 3 gathers them as all others.
StateTraffic frozen_traffic(const Trial&, double elements, double shared = 0, PipelinePlace = {});
// The same of quantized weights, and of those of experts: their bytes are gathered as they are.
StateTraffic quantized_traffic(const Trial&, double bytes, double of_experts, PipelinePlace = {});
// The same for numbers of this rank's experts, which dp x cp / ep ranks hold.
StateTraffic expert_state_traffic(const Trial&, double elements, PipelinePlace = {});
StateTraffic frozen_expert_traffic(const Trial&, double elements, PipelinePlace = {});

}  // namespace sweep::shape
