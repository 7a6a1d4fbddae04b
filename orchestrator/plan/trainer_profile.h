// TrainerProfile: what a training program keeps in memory and what its steps cost, beyond what the configuration says.
// Each number has a meaning; `sweep predict --fit` fits them to measured rows. JSON is its form on disk.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/expected.h"

namespace sweep::plan {

struct MemoryParameters {
  double base_gib = 0.1071;
  double gradient_copies = 1.346;
  double fragmentation = 0.111;
  double gather_buffers = 4.609;
  double held_most = 45.58;
  double held_offset = -2.634;
  double held_per_lead = 6.853;
  double held_per_stages = 3.907;
  double held_per_tp = -1.509;
  double held_per_balance = 6.464;
  double held_until = 2.058;
};

struct TimeParameters {
  double matmul_share = 0.5444;
  double half_width = 178.3;
  double bandwidth_share = 0.4523;
  double layer_launch_s = 0.00457;
  double stage_launch_s = 0.00302;
  double hop_launch_s = 0.001086;
  double hop_power = 1.334;
  double near_latency_s = 6.869e-05;
  double near_share = 4.91;
  double far_latency_s = 0.000347;
  double far_share = 2.555;
  double slow_message_s = 0.267;
  double slow_tensor_s = 0.005753;
  double data_parallel_share = 2.458;
  double optimizer_share = 6.869;
  double retry_s = 1.12;
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
  double need_share = 0.828284;        // of the GPU's memory: more live bytes than that end in out of memory
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
  double memory_error = 0.16, time_error = 0.74;  // relative; nine of ten measured rows lie within
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

std::string to_json(const TrainerProfile&);
// Error: no JSON, an unknown or missing parameter, a number that is not finite.
Expected<TrainerProfile> profile_from_json(std::string_view text);

}  // namespace sweep::plan
