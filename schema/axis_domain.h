// AxisDomain: the values an axis of fields.def may take: a range of whole numbers, or a closed list of words.
// The one place that spells them; the grid reader, the JSON Schema test, the command line and the
// documentation read it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace sweep {

struct AxisDomain {
  std::string_view key;
  std::int64_t min = 0, max = 0;  // of a whole-number axis, both included
  std::span<const std::string_view> words =
      {};  // of a word axis; empty: numbers, a flag, or a catalogue (hardware)
};

namespace domain {
inline constexpr std::array<std::string_view, 6> kPrecision{"fp32",        "fp16",       "bf16",
                                                            "bf16_master", "bf16_mixed", "fp8"};
inline constexpr std::array<std::string_view, 3> kRecompute{"none", "selective", "full"};
inline constexpr std::array<std::string_view, 4> kOffload{"none", "optimizer", "parameters", "disk"};
inline constexpr std::array<std::string_view, 3> kOptimizer{"plain", "foreach", "fused"};
inline constexpr std::array<std::string_view, 3> kAttention{"math", "flash", "auto"};
inline constexpr std::array<std::string_view, 4> kBackend{"auto", "nccl", "gloo", "shm"};
inline constexpr std::array<std::string_view, 1> kWorkload{"step"};
inline constexpr std::array<std::string_view, 3> kGradDtype{"auto", "fp32", "bf16"};
inline constexpr std::array<std::string_view, 4> kSchedule{"afab", "1f1b", "interleaved", "zero_bubble"};
inline constexpr std::array<std::string_view, 2> kCpForm{"ring", "all_to_all"};
inline constexpr std::array<std::string_view, 3> kRouting{"balanced", "learned", "skewed"};

// Upper ends are far above any machine that exists; they keep products of a few axes within 64 bits' reach.
inline constexpr std::array kAll{
    AxisDomain{"nodes", 1, 100'000},
    AxisDomain{"gpus_per_node", 1, 1024},
    AxisDomain{"dp", 1, 1'000'000},
    AxisDomain{"tp", 1, 1'000'000},
    AxisDomain{"pp", 1, 1'000'000},
    AxisDomain{"cp", 1, 1'000'000},
    AxisDomain{"ep", 1, 1'000'000},
    AxisDomain{"zero", 0, 3},
    AxisDomain{"micro_batch_size", 1, 1'000'000},
    AxisDomain{"grad_accum", 1, 1'000'000'000},
    AxisDomain{"global_batch_size", 1, 1'000'000'000},
    AxisDomain{"seq_len", 1, 100'000'000},
    AxisDomain{"bucket_mb", 1, 65'536},
    AxisDomain{"threads", 1, 4096},
    AxisDomain{"memory_cap_bytes", 512, std::int64_t{1} << 50},
    AxisDomain{"precision", 0, 0, kPrecision},
    AxisDomain{"recompute", 0, 0, kRecompute},
    AxisDomain{"offload", 0, 0, kOffload},
    AxisDomain{"optimizer", 0, 0, kOptimizer},
    AxisDomain{"attention", 0, 0, kAttention},
    AxisDomain{"backend", 0, 0, kBackend},
    AxisDomain{"workload", 0, 0, kWorkload},
    AxisDomain{"dp_shard", 1, 1'000'000},
    AxisDomain{"prefetch_forward", 0, 64},
    AxisDomain{"prefetch_backward", 0, 64},
    AxisDomain{"vpp", 1, 1024},
    AxisDomain{"hot_percent", 0, 100},
    AxisDomain{"capacity_percent", 0, 100'000},
    AxisDomain{"recompute_every", 1, 100'000},
    AxisDomain{"grad_dtype", 0, 0, kGradDtype},
    AxisDomain{"schedule", 0, 0, kSchedule},
    AxisDomain{"cp_form", 0, 0, kCpForm},
    AxisDomain{"routing", 0, 0, kRouting},
};
}  // namespace domain

// Absent (nullptr) for axes without one: hardware (its catalogue) and flags.
constexpr const AxisDomain* axis_domain(std::string_view key) {
  for (const AxisDomain& d : domain::kAll) {
    if (d.key == key) return &d;
  }
  return nullptr;
}

// Whole-number axes that start at 1. A Trial holds 0 there when the grid pruned it before the value was resolved;
// everything people read (database, tables, pages) has NULL.
constexpr bool zero_is_unresolved(std::string_view key) {
  const AxisDomain* d = axis_domain(key);
  return d && d->words.empty() && d->min >= 1;
}

}  // namespace sweep
