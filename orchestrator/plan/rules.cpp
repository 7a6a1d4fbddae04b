#include "orchestrator/plan/rules.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "bench_kernels/shape/around_step.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/found_gpu.h"
#include "bench_kernels/shape/graphs.h"
#include "bench_kernels/shape/rank_algebra.h"
#include "bench_kernels/shape/splits.h"
#include "bench_kernels/shape/stage_split.h"
#include "bench_kernels/shape/step_sizes.h"
#include "schema/axis_domain.h"
#include "schema/hardware_kinds.h"
#include "schema/rank_variables.h"

namespace sweep::plan {
namespace {

using Verdict = std::optional<Objection>;

Verdict pruned(const char* rule, std::string reason) {
  return Objection{{rule, std::move(reason)}, Outcome::kPruned};
}

// The domain of each axis, in the order of the table.
const std::vector<const AxisDomain*>& domains() {
  static const auto all = [] {
    std::vector<const AxisDomain*> found;
    const Trial t;
    for_each_axis(
        t, [&](const FieldInfo& axis, const auto&, const auto&) { found.push_back(axis_domain(axis.key)); });
    return found;
  }();
  return all;
}

// Each whole-number axis within its domain (fields.def).
Verdict range(const Trial& t) {
  Verdict out;
  auto next = domains().begin();
  for_each_axis(t, [&](const FieldInfo& axis, const auto&, const auto& value) {
    [[maybe_unused]] const AxisDomain* domain = *next++;
    if constexpr (std::is_convertible_v<decltype(value), std::optional<i64>>) {
      const std::optional<i64> number = value;
      if (out || !domain || !number || (*number >= domain->min && *number <= domain->max)) return;
      out = pruned("range",
                   fmt::format("{} = {} is outside {} .. {}", axis.key, *number, domain->min, domain->max));
    }
  });
  if (out || !has_model(t)) return out;
  if (const auto spec = shape::completed(t.spec); !spec)
    return pruned("range", "the model: " + spec.error().message);
  return {};
}

Verdict hardware(const Trial& t) {
  const shape::Hardware* h = shape::known_hardware(t.hardware);
  if (h == nullptr) return pruned("hardware", shape::find_hardware(t.hardware).error().message);
  if (const auto kinds = std::ssize(kinds_of(t.hardware)); t.nodes % kinds != 0)
    return pruned("hardware", fmt::format("{} cannot be as many of each of the {} kinds in {}",
                                          counted(t.nodes, "node"), kinds, t.hardware));
  if (t.workload == Workload::kStep && t.backend == CommBackend::kShm && !h->gpu.empty())
    return pruned("hardware", "backend shm moves tensors of the CPU; on GPUs give nccl, or gloo");
  if (t.workload == Workload::kStep && t.backend == CommBackend::kShm && t.nodes > 1)
    return pruned("hardware", "backend shm is the memory of one node; between nodes give gloo");
  if (t.workload != Workload::kCommand && t.backend == CommBackend::kNccl && h->gpu.empty())
    return pruned("hardware",
                  fmt::format("backend nccl needs GPUs, and {} has none; give gloo or shm", t.hardware));
  return {};
}

Verdict rank_algebra(const Trial& t) {
  const auto sizes = shape::RankSizes::of(t);
  if (const auto violation = shape::broken_by_ranks(sizes))
    return pruned("rank_algebra", sentence(*violation, sizes));
  return {};
}

Verdict global_batch(const Trial& t) {
  const auto sizes = shape::RankSizes::of(t);
  if (const auto same = solve(shape::Relation::kBatch, sizes); !same)
    return pruned("divisibility", sentence(same.error(), sizes));
  return {};
}

Verdict splits(const Trial& t) {
  if (auto sentence = shape::uneven_split(t)) return pruned("divisibility", std::move(*sentence));
  return {};
}

Verdict experts(const Trial& t) {
  if (t.ep == 1) return {};
  if (t.spec.experts == 0)
    return pruned("experts",
                  fmt::format("ep {} > 1, but {} is a dense model without experts", t.ep, t.model));
  if (t.spec.experts % t.ep == 0) return {};
  return pruned("divisibility", fmt::format("{} experts cannot be split over ep={}", t.spec.experts, t.ep));
}

Verdict pipeline(const Trial& t) {
  if (auto sentence = shape::pipeline_objection(t)) return pruned("pipeline", std::move(*sentence));
  return {};
}

Verdict recomputation(const Trial& t) {
  if (auto sentence = shape::recompute_objection(t)) return pruned("recompute", std::move(*sentence));
  return {};
}

Verdict zero(const Trial& t) {
  const i64 sharding = t.dp_shard.value_or(t.dp);
  if (t.zero == 0 || sharding * t.cp > 1) return {};
  return pruned(
      "zero", fmt::format("zero {} shards over {} {} x cp {} = 1 rank: nothing to shard; the same as zero 0",
                          t.zero, t.dp_shard ? "dp_shard" : "dp", sharding, t.cp));
}

Verdict positions(const Trial& t) {
  if (t.spec.max_positions == 0 || t.seq_len <= t.spec.max_positions) return {};
  return pruned("positions", fmt::format("seq_len {} > {} learned positions of the model", t.seq_len,
                                         t.spec.max_positions));
}

// A processor computes what it has no units for in software; a GPU without the units is not asked to.
Verdict precision(const Trial& t) {
  if (auto sentence = shape::tf32_objection(t))
    return Objection{{"precision", std::move(*sentence)}, Outcome::kUnsupported};
  const shape::Hardware* h = shape::known_hardware(t.hardware);
  if (h == nullptr || h->peak_for(t.precision, t.tf32)) return {};
  if (h->gpu.empty() && t.precision != Precision::kFp8) return {};  // processors compute in any other type
  return Objection{{"precision", fmt::format("{} has no {} units", t.hardware, t.precision)},
                   Outcome::kUnsupported};
}

Verdict attention(const Trial& t) {
  if (auto sentence = shape::attention_objection(t, shape::kernel_path(t)))
    return Objection{{"attention", std::move(*sentence)}, Outcome::kUnsupported};
  return {};
}

Verdict graphs(const Trial& t) {
  if (auto sentence = shape::graph_objection(t, shape::kernel_path(t)))
    return Objection{{"cuda_graph", std::move(*sentence)}, Outcome::kUnsupported};
  return {};
}

Verdict variables(const Trial& t) {
  if (const auto read = rank_variables_from(t.env); !read) return pruned("env", read.error().message);
  if (t.env.empty() || t.workload != Workload::kCommand) return {};
  return pruned("env",
                "env: these are variables of the built-in step; a command's are `env` of its workload");
}

Verdict host_memory(const Trial& t) {
  if (!t.host_memory_cap_bytes) return {};
  if (auto sentence = shape::host_memory_objection(t, static_cast<double>(*t.host_memory_cap_bytes)))
    return pruned("host_memory", std::move(*sentence));
  return {};
}

}  // namespace

bool has_model(const Trial& t) {
  return t.workload != Workload::kCommand || t.spec.layers > 0;
}

std::optional<Objection> first_objection(const Trial& t) {
  // Later rules divide and multiply what earlier ones have bounded.
  constexpr std::array kOfAnyTrial{rank_algebra, range, hardware, global_batch, variables};
  constexpr std::array kOfAModel{splits, experts, pipeline, recomputation, zero, positions};
  constexpr std::array kOfTheStep{precision, attention, graphs, host_memory};
  const auto first = [&](const auto& rules) -> Verdict {
    for (const auto rule : rules)
      if (auto objection = rule(t)) return objection;
    return {};
  };
  Verdict out = first(kOfAnyTrial);
  if (!out && has_model(t)) out = first(kOfAModel);
  if (!out && t.workload != Workload::kCommand) out = first(kOfTheStep);
  return out;
}

std::optional<predict::Refusal> step_refusal(const Trial& t) {
  return first_objection(t);
}

}  // namespace sweep::plan
