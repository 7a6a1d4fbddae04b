// The dimensions of latent attention and of what comes with it in DeepSeek's families, by their keys in a grid.
#pragma once
#include <array>
#include <string_view>

#include "schema/model_spec.h"

namespace sweep::shape {

struct LatentDimension {
  std::string_view key;
  std::int64_t ModelSpec::*size;
  bool may_be_absent = false;  // 0 is a value that a grid may give
};

inline constexpr std::array kLatentDimensions{
    LatentDimension{"kv_lora_rank", &ModelSpec::kv_lora_rank},
    LatentDimension{"q_lora_rank", &ModelSpec::q_lora_rank, true},
    LatentDimension{"rope_head_dim", &ModelSpec::rope_head_dim},
    LatentDimension{"v_head_dim", &ModelSpec::v_head_dim},
    LatentDimension{"shared_experts", &ModelSpec::shared_experts, true},
    LatentDimension{"dense_layers", &ModelSpec::dense_layers, true},
    LatentDimension{"dense_intermediate_size", &ModelSpec::dense_intermediate_size},
    LatentDimension{"expert_groups", &ModelSpec::expert_groups, true},
    LatentDimension{"groups_per_token", &ModelSpec::groups_per_token, true}};

}  // namespace sweep::shape
