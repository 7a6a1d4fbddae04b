// Every key the grid reader accepts, by section: the reader checks against it and the JSON Schema is tested
// against it.
#pragma once
#include <array>
#include <string_view>

namespace sweep::grid {

inline constexpr std::array<std::string_view, 18> kTopKeys{
    "name",    "question", "model",   "base",    "grid",   "zip",    "where",    "include",  "stages",
    "exclude", "derive",   "repeats", "measure", "limits", "launch", "workload", "strategy", "suggested"};
inline constexpr std::array<std::string_view, 4> kMeasureKeys{"warmup_steps", "steps", "repeats",
                                                              "early_stop"};
inline constexpr std::array<std::string_view, 8> kLimitKeys{
    "gpu_hours",     "usd",           "trial_seconds", "hang_seconds",
    "start_seconds", "retries_crash", "retries_infra", "memory_margin_percent"};
inline constexpr std::array<std::string_view, 6> kStrategyKeys{"kind",    "max_trials", "least_gain",
                                                               "at_once", "history",    "skip_recompute"};
inline constexpr std::array<std::string_view, 28> kModelKeys{"base",
                                                             "config_json",
                                                             "name",
                                                             "family",
                                                             "layers",
                                                             "hidden_size",
                                                             "heads",
                                                             "kv_heads",
                                                             "head_dim",
                                                             "intermediate_size",
                                                             "vocab_size",
                                                             "max_positions",
                                                             "tie_embeddings",
                                                             "sliding_window",
                                                             "sliding_window_pattern",
                                                             "query_pre_attn_scalar",
                                                             "experts",
                                                             "experts_per_token",
                                                             "kv_lora_rank",
                                                             "q_lora_rank",
                                                             "rope_head_dim",
                                                             "v_head_dim",
                                                             "shared_experts",
                                                             "dense_layers",
                                                             "dense_intermediate_size",
                                                             "expert_groups",
                                                             "groups_per_token",
                                                             "encoder_layers"};

// Keys of the section `workload`, and of a recipe's file.
inline constexpr std::array<std::string_view, 18> kWorkloadKeys{
    "recipe", "script",    "command",  "arguments", "container",        "prologue",
    "env",    "flags",     "derive",   "files",     "unsupported",      "notes",
    "folder", "processes", "spelling", "axes",      "stop_after_steps", "log_patterns"};
inline constexpr std::array<std::string_view, 22> kRecipeKeys{
    "recipe",      "script", "command", "arguments", "container", "prologue",         "env",          "flags",
    "derive",      "files",  "folder",  "processes", "spelling",  "stop_after_steps", "log_patterns", "axes",
    "unsupported", "notes",  "trainer", "checked",   "paste",     "first_grid"};

// Keys of a site profile, beside the launchers, which have the same keys as in a grid.
inline constexpr std::array<std::string_view, 3> kSiteKeys{"checkpoint_folder", "limits", "prices"};
inline constexpr std::array<std::string_view, 1> kSiteLimitKeys{"gpu_hours"};
// Keys of prices.<catalogue name>, in USD; one of them is given.
inline constexpr std::array<std::string_view, 2> kPriceKeys{"node_hour", "gpu_hour"};

}  // namespace sweep::grid
