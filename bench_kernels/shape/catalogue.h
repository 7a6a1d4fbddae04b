// Catalogues of models and hardware. Unknown names are an error that lists the nearest ones.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/model_spec.h"
#include "schema/trial.h"

namespace sweep::shape {

struct Price {
  double usd_per_node_hour = 0;
  std::string source;  // the publication
  std::string date;    // ISO date of that price
};

struct Hardware {
  std::string name;  // h100-sxm-80gb, cpu, ...
  std::string gpu;   // the driver's name for it; empty for cpu
  i64 gpus_per_node = 1;
  // GPUs of a rack that reach each other at intra_node_bandwidth (NVL72). 1: only those of a node do.
  i64 linked_gpus = 1;
  std::optional<i64> memory_bytes;           // per GPU; absent for cpu (host memory, or memory_cap_bytes)
  std::map<std::string, double> peak_flops;  // dense, by precision: fp32 (tf32 apart), tf32, fp16, bf16, fp8
  // The share of the peak that the best large product in 16 bits was measured to reach; 0: nobody measured it.
  double product_reach = 0;
  double memory_bandwidth = 0;        // bytes/s per GPU
  double intra_node_bandwidth = 0;    // bytes/s per GPU and direction
  double inter_node_bandwidth = 0;    // bytes/s per GPU and direction
  std::optional<Price> price;         // nullopt if no public price is known
  std::vector<Price> earlier_prices;  // the oldest first
  std::string compute_capability;     // "9.0"; empty for cpu
  i64 multiprocessors = 0;            // number on a GPU; 0 for cpu
  // Dense peak for a training precision (fp32, bf16, fp16, fp8, and forms of one such as bf16_master), or of TF32;
  // nullopt if the hardware has no such units.
  std::optional<double> peak_for(Precision, bool tf32 = false) const;
  // Bus bandwidth in bytes/s of an all-reduce, all-gather or reduce-scatter of `ranks` over `nodes`: a ring leaves
  // each node once, by the NICs of all its ranks there, which is why nccl-tests' busbw over nodes of 8 x 50 GB/s is
  // near 400 GB/s (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
  double ring_bandwidth(double ranks, double nodes) const;
};

struct NamedModel {
  std::string name;
  ModelSpec spec;
  std::string source;  // the config.json it was read from
};

// Why this trial cannot have tf32: another precision, or hardware without such units.
std::optional<std::string> tf32_objection(const Trial&);

std::span<const Hardware> all_hardware();
std::span<const NamedModel> all_models();
// Finds a hardware of the catalogue, or a mix of its GPUs (mixed_hardware.h).
Expected<Hardware> find_hardware(std::string_view name);
// The same without a copy or a sentence; nullptr: unknown.
const Hardware* known_hardware(std::string_view name);
Expected<ModelSpec> find_model(std::string_view name);

// The catalogue's price of this amount, now or earlier; nullopt: no list has this amount.
std::optional<Price> published_price(std::string_view hardware, double usd_per_node_hour);
// Compares ISO dates by the day; `today` may be a longer ISO time.
bool older_than_a_year(const Price&, std::string_view today);

// The dimensions from the text of a Hugging Face config.json (llama, mistral, qwen2, gpt2). Untrusted input:
// every number is bounded; unsupported features (other activations, MoE, rope types) are refused by name.
Expected<ModelSpec> model_from_config_json(std::string_view text);
// Sets what the family implies (norm, positions, biases) and head_dim, then checks ranges and divisibility.
Expected<ModelSpec> completed(ModelSpec);

// The candidate with the smallest edit distance, if it is close enough to be a slip of the pen.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace sweep::shape
