#include "orchestrator/import/layout.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/rank_algebra.h"

namespace sweep::imports {
namespace {

using shape::Relation;

i64 gpus_of(const Trial& t, const Stated& stated) {
  if (stated.contains("gpus_per_node")) return t.gpus_per_node;
  const auto hardware = shape::find_hardware(t.hardware);
  return hardware && !hardware->gpu.empty() ? hardware->gpus_per_node : 0;  // 0: not known
}

// Sets `to` to what the relation gives; else the equation, and which column would settle it.
Expected<void> set(Relation relation, const shape::RankSizes& sizes, std::string_view way_out, i64& to) {
  const auto solved = solve(relation, sizes);
  if (!solved) {
    const Error error = error_of(solved.error(), sizes);
    return tl::unexpected(retold(error, error.message + std::string(way_out)));
  }
  to = *solved;
  return {};
}

// Full nodes are an assumption unless the file says how many GPUs of each were used.
std::string full_nodes(std::string_view computed, const Trial& t, i64 gpus, const Stated& stated) {
  if (stated.contains("gpus_per_node")) return "";
  return fmt::format(
      "{} assumes that all {} GPUs of a node were used, as the catalogue has {}; else give --set "
      "gpus_per_node=N",
      computed, gpus, t.hardware);
}

Expected<std::string> complete_ranks(Trial& t, const Stated& stated) {
  std::string assumed;
  auto sizes = shape::RankSizes::of(t);
  i64 world = 0;
  SWEEP_TRY(set(Relation::kWorld, sizes, "", world));
  const i64 gpus = gpus_of(t, stated);
  if (!stated.contains("dp") && stated.contains("nodes") && gpus > 0) {
    sizes.gpus_per_node = gpus;
    SWEEP_TRY(set(Relation::kDp, sizes, "; state dp", t.dp));
    sizes.dp = t.dp;
    world = t.world();
    assumed = full_nodes("dp = nodes x GPUs / (tp x pp x cp)", t, gpus, stated);
  } else if (!stated.contains("dp") && stated.contains("nodes")) {
    return fail(ErrorKind::kMissing, "dp",
                "nothing says how many GPUs {} nodes of '{}' have, so dp is not known; add a column dp, or "
                "give --set dp=N or --set gpus_per_node=N",
                t.nodes, t.hardware);
  } else if (!stated.contains("dp")) {
    assumed = "dp is taken to be 1, as no column says it; else give --set dp=N";
  }
  if (!stated.contains("nodes")) {
    t.nodes = gpus > 0 ? (world + gpus - 1) / gpus : 1;
    if (assumed.empty() && gpus > 0 && world >= gpus)
      assumed = full_nodes("nodes = ranks / GPUs", t, gpus, stated);
  }
  if (stated.contains("gpus_per_node")) {
    if (world <= t.nodes * t.gpus_per_node) return assumed;
    return fail(ErrorKind::kConflict, "gpus_per_node",
                "{} nodes x {} GPUs do not hold dp x tp x pp x cp = {} ranks; correct one of them", t.nodes,
                t.gpus_per_node, world);
  }
  sizes.nodes = t.nodes;
  SWEEP_TRY(set(Relation::kGpusPerNode, sizes, "; correct them, or state nodes and gpus_per_node",
                t.gpus_per_node));
  return assumed;
}

Expected<void> complete_batch(Trial& t, const Stated& stated) {
  const auto sizes = shape::RankSizes::of(t);
  if (stated.contains("global_batch_size")) {
    if (stated.contains("grad_accum")) return {};
    return set(Relation::kGradAccum, sizes, "; state grad_accum", t.grad_accum);
  }
  return set(Relation::kGlobalBatch, sizes, "", t.global_batch_size);
}

}  // namespace

Expected<std::string> complete(Trial& t, const Stated& stated) {
  auto assumed = complete_ranks(t, stated);
  if (!assumed) return assumed;
  SWEEP_TRY(complete_batch(t, stated));
  return assumed;
}

void leave_unresolved(Trial& t, const Stated& stated, std::string_view axis) {
  if (stated.contains(axis)) return;
  if (axis == "dp") t.dp = 0;
  if (axis == "gpus_per_node") t.gpus_per_node = 0;
  if (axis == "grad_accum") t.grad_accum = 0;
}

bool batch_multiplies_out(const Trial& t) {
  return solve(Relation::kBatch, shape::RankSizes::of(t)).has_value();
}

}  // namespace sweep::imports
