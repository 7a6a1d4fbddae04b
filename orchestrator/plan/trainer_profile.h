// TrainerProfile: what a training program keeps in memory and what its steps cost, beyond what the
// configuration says. Each number has a meaning; `sweep predict --fit` fits them to measured rows. JSON is
// its form on disk.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::plan {

struct MemoryParameters {
  double base_gib = 0.14021;
  double gradient_copies = 1.3814;
  double fragmentation = 0.12501;
  double gather_buffers = 5.2101;
  double held_most = 45.124;
  double held_offset = 6.7307;
  double held_per_lead = 1.6437;
  double held_per_stages = 2.2485;
  double held_per_tp = -3.6318;
  double held_per_balance = 12.159;
  double held_until = 2.7198;
};

struct TimeParameters {
  double matmul_share = 0.53452;
  double half_width = 107.48;
  double bandwidth_share = 0.47376;
  double layer_launch_s = 0.0046608;
  double stage_launch_s = 0.0024299;
  double hop_launch_s = 0.0013431;
  double hop_power = 1.2711;
  double near_latency_s = 4.9058e-05;
  double near_share = 1.3317;
  double far_latency_s = 0.00037781;
  double far_share = 2.432;
  double slow_message_s = 0.2671;
  double data_parallel_share = 2.3345;
  double optimizer_share = 7.2678;
  double retry_s = 1.1243;
};

// What the fit does not touch: measured or read from the program's source.
struct ProfileFacts {
  double weight_bytes = 2, gradient_bytes = 4, optimizer_bytes = 12;  // per parameter, in 16-bit training
  double logit_bytes = 10;             // per logit at the peak: one 16-bit and two 32-bit tensors
  double hidden_saved = 8;             // tensors of hidden_size a layer saves per token
  double intermediate_saved = 4;       // tensors of intermediate_size a layer saves per token
  bool splits_by_cost = true;          // pipeline stages: shape/cost_split.h, else shape/stage_split.h
  bool reports_first_stage = true;     // the program reports the memory of rank 0, not of the fullest rank
  double reported_unit = 1.073741824;  // device bytes in what it reports as a byte: its GB are GiB
  bool warmup_needs_micros = true;     // 1f1b refuses grad_accum < pp - 1
  bool tied_zero0_hangs = true;        // tied embeddings, zero 0, 1 < dp < 32, a pipeline over several nodes
  double need_share = 0.834793;        // of the GPU's memory: more live bytes than that end in out of memory
  double need_logits = 0.86;           // of the logits, that are needed when the rest is at its most
  double need_whole = 4.2;             // whole-sequence tensors that are needed with tp
  double need_held = 0.2;              // of the held tensors, that cannot be waited for
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
  double memory = 0.156, memory_tensor = 0.173;  // without and with tensor parallelism
  // ln of a factor: one node or no pipeline; a pipeline over several nodes; one over 32 nodes or more.
  double time = 0.42, time_far = 0.396, time_many = 1.49;
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

}  // namespace sweep::plan
