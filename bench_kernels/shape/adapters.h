// Adapters: which linear layers of a block have low-rank adapters beside their frozen weight (LoRA: Hu et al.
// 2021, arXiv 2106.09685), and how many numbers those are. Everything else of the model is frozen then: it is
// read, and has neither gradients nor optimizer state.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/trial.h"

namespace sweep::shape {

struct Adapters {
  i64 rank = 0;      // 0: none, all parameters are trained
  double scale = 1;  // lora_alpha / lora_rank
  bool query = false, key = false, value = false, attention_out = false, mlp = false;
  // Adapters that read the same rows: of latent attention those that make the latents.
  i64 on_attention_input = 0, on_mlp_input = 0;
  bool any() const { return rank > 0; }
};
Adapters adapters_of(const Trial&);

// The adapters of a layer by the rows that they read: `count` of them read the same `in` numbers of a token, and give
// `out` in all. What tensor-parallel ranks divide is the same as of the frozen product beside them.
enum class Divided { kNothing, kInputs, kOutputs };
struct AdapterProducts {
  i64 count = 1, in = 0, out = 0;
  Divided divided = Divided::kNothing;
};
std::vector<AdapterProducts> adapter_products(const Trial&);

// Numbers of all adapters of the model; 0 without adapters. Each multiplies every token.
i64 adapter_parameter_count(const Trial&);

// Why the step does not train adapters in this configuration, as a sentence; nullopt: it does.
std::optional<std::string> adapters_objection(const Trial&);

}  // namespace sweep::shape
