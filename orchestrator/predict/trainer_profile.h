// TrainerProfile: what a training program keeps in memory and what its steps cost, beyond what the
// configuration says. Each number has a meaning; `sweep predict --fit` fits them to measured rows. JSON is
// its form on disk.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::predict {

struct MemoryParameters {
  double base_gib = 0.16918;
  double gradient_copies = 0.50863;
  double scatter_copies = 0.31357;
  double fragmentation = 0.056943;
  double gather_buffers = 4.3323;
  double held_most = 48.563;
  double held_filling = 22.979;
  double held_from = -0.13688;
  double held_offset = 27.582;
  double held_per_tp = -9.9787;
  double held_per_balance = 52.836;
  double held_until = 2.6745;
};

struct TimeParameters {
  double matmul_share = 0.53237;
  double half_width = 101.79;
  double bandwidth_share = 0.46601;
  double layer_launch_s = 0.0046537;
  double stage_launch_s = 0.0026153;
  double hop_launch_s = 0.0013291;
  double hop_power = 1.2742;
  double near_latency_s = 4.2818e-05;
  double near_share = 1.2734;
  double far_latency_s = 0.00037333;
  double far_share = 2.1953;
  double slow_message_s = 0.26009;
  double data_parallel_share = 2.354;
  double optimizer_share = 7.1424;
  double retry_s = 1.1096;
};

// What the fit does not touch: measured or read from the program's source.
struct ProfileFacts {
  double weight_bytes = 2, gradient_bytes = 4, optimizer_bytes = 12;  // per parameter, in 16-bit training
  double logit_bytes = 8;              // per logit at the peak: two 32-bit tensors
  double hidden_saved = 8;             // tensors of hidden_size a layer saves per token
  double intermediate_saved = 4;       // tensors of intermediate_size a layer saves per token
  bool joint_qkv = true;               // q, k and v are saved as one tensor where they are of one width
  bool splits_by_cost = true;          // pipeline stages: shape/cost_split.h, else shape/stage_split.h
  bool reports_first_stage = true;     // the program reports the memory of rank 0, not of the fullest rank
  double reported_unit = 1.073741824;  // device bytes in what it reports as a byte: its GB are GiB
  bool warmup_needs_micros = true;     // 1f1b refuses grad_accum < pp - 1
  bool tied_zero0_hangs = true;        // tied embeddings, zero 0, 1 < dp < 32, a pipeline over several nodes
  double need_share = 0.899165;        // of the GPU's memory: more live bytes than that end in out of memory
  double need_logits = 0.979;          // of the logits, that are needed when the rest is at its most
  double need_whole = 5.13;            // whole-sequence tensors that are needed with tp
  double need_held = 0.212;            // of the held tensors, that cannot be waited for
  double unsure_band = 0.07;           // around it: the prediction does not know
  double reserved_share = 0.9705;      // of the GPU's memory that the allocator can reserve
  double retry_share = 0.898;  // from this share on the allocator frees and asks again in each micro-step
  // Memory is that of our own step, allocation by allocation: shape/step_memory.h.
  bool follows_step = false;
  // PyTorch's FSDP2, DDP or one rank: states as shape/model_states.h keeps them for the precision, gradients
  // made anew in each step, weights gathered for the unit at work.
  bool eager = false;
  bool whole_logits = false;     // eager: the loss of tensor-parallel ranks is of gathered logits (DTensor)
  bool keeps_gradients = false;  // eager: zeroed, not dropped, after a step (PyTorch before 2.0)
  double score_bytes = 0;   // of each attention score that a layer keeps: attention without FlashAttention
  double update_bytes = 0;  // per parameter of a rank's share while the optimizer works: AdamW as foreach
};

// Collective bandwidth in bytes/s by the number of nodes a group spans.
struct LinkTable {
  std::vector<double> nodes, all_reduce, all_gather;
};

// Relative; nine of ten rows of a kind that a fit has not seen lie within.
struct Uncertainty {
  double memory = 0.135, memory_tensor = 0.15;  // without and with tensor parallelism
  // ln of a factor: one node or no pipeline; a pipeline over several nodes; one over 32 nodes or more.
  double time = 0.441, time_far = 0.386, time_many = 1.51;
};

struct TrainerProfile {
  std::string name = "nanotron";
  std::string hardware = "h100-sxm-80gb";
  std::string source;  // what it was fitted on
  MemoryParameters memory;
  TimeParameters time;
  ProfileFacts facts;
  LinkTable links;
  Uncertainty error;
};

template <class T>
struct Parameter {
  const char* name;
  double T::*member;
  const char* meaning;
};
std::span<const Parameter<MemoryParameters>> memory_parameters();
std::span<const Parameter<TimeParameters>> time_parameters();

// nanotron of January 2025 on nodes of 8 H100.
const TrainerProfile& nanotron_profile();
// Our own step: memory by shape/step_memory.h. Times: hardware as nanotron's, launches by C++ (measured on
// phantom GPUs: 3 to 8 ms for four layers), no overlap of tensor parallelism, none of that cluster's effects
// without a known cause.
const TrainerProfile& step_profile();
// Eager PyTorch with a fused RMSNorm under FSDP2; transformers' Llama, whose norms keep fp32 copies; minGPT
// under Lightning's FSDP on V100.
const TrainerProfile& fsdp2_profile();
const TrainerProfile& transformers_profile();
const TrainerProfile& lightning_profile();
// By name; absent: no profile of that name is built in.
const TrainerProfile* built_in_profile(std::string_view name);
// "nanotron, sweep, ..."
std::string built_in_profiles();

std::string to_json(const TrainerProfile&);
// Error: no JSON, an unknown or missing parameter, a number that is not finite.
Expected<TrainerProfile> profile_from_json(std::string_view text);

}  // namespace sweep::predict
