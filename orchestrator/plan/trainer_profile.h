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
  double base_gib = 0.14789;
  double gradient_copies = 1.3744;
  double fragmentation = 0.1279;
  double gather_buffers = 5.1873;
  double held_most = 43.22;
  double held_offset = 5.8025;
  double held_per_lead = 3.632;
  double held_per_stages = 2.257;
  double held_per_tp = -3.3315;
  double held_per_balance = 11.088;
  double held_until = 2.0369;
};

struct TimeParameters {
  double matmul_share = 0.53412;
  double half_width = 239.45;
  double bandwidth_share = 0.58811;
  double layer_launch_s = 0.0047437;
  double stage_launch_s = 0.0024025;
  double hop_launch_s = 0.0012851;
  double hop_power = 1.2858;
  double near_latency_s = 5.779e-05;
  double near_share = 2.713e+06;
  double far_latency_s = 0.00034412;
  double far_share = 3.3637;
  double slow_message_s = 0.26575;
  double slow_tensor_s = 0.0058525;
  double data_parallel_share = 2.4419;
  double optimizer_share = 6.7902;
  double retry_s = 1.0981;
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
  double need_share = 0.834668;        // of the GPU's memory: more live bytes than that end in out of memory
  double need_logits = 0.88;           // of the logits, that are needed when the rest is at its most
  double need_whole = 4.5;             // whole-sequence tensors that are needed with tp
  double need_held = 0.2;              // of the held tensors, that cannot be waited for
  double unsure_band = 0.07;           // around it: the prediction does not know
  double reserved_share = 0.9705;      // of the GPU's memory that the allocator can reserve
  double retry_share = 0.898;  // from this share on the allocator frees and asks again in each micro-step
};

// Collective bandwidth in bytes/s by the number of nodes a group spans.
struct LinkTable {
  std::vector<double> nodes, all_reduce, all_gather;
};

struct TrainerProfile {
  std::string name = "nanotron";
  std::string hardware = "h100-sxm-80gb";
  std::string source;  // what it was fitted on
  MemoryParameters memory;
  TimeParameters time;
  ProfileFacts facts;
  LinkTable links;
  double memory_error = 0.154, time_error = 0.744;  // relative; nine of ten measured rows lie within
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
// Our own step, for the plan's times: hardware as nanotron's, launches by C++ (measured on phantom GPUs: 3 to
// 8 ms for four layers), no overlap of tensor parallelism, none of that cluster's effects without a known
// cause.
const TrainerProfile& step_profile();

std::string to_json(const TrainerProfile&);
// Error: no JSON, an unknown or missing parameter, a number that is not finite.
Expected<TrainerProfile> profile_from_json(std::string_view text);

}  // namespace sweep::plan
