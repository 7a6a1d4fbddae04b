#include "orchestrator/import/layout.h"

#include <fmt/format.h>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::imports {
namespace {

constexpr double kMostRanks = 1e8;

i64 gpus_of(const Trial& t, const Stated& stated) {
  if (stated.contains("gpus_per_node")) return t.gpus_per_node;
  const auto hardware = shape::find_hardware(t.hardware);
  return hardware && !hardware->gpu.empty() ? hardware->gpus_per_node : 0;  // 0: not known
}

Expected<void> complete_ranks(Trial& t, const Stated& stated) {
  const double product = double(t.dp) * double(t.tp) * double(t.pp) * double(t.cp);
  if (product > kMostRanks)
    return fail(fmt::format("dp x tp x pp x cp = {} x {} x {} x {} are more ranks than any machine has", t.dp,
                            t.tp, t.pp, t.cp));
  const i64 gpus = gpus_of(t, stated), split = t.tp * t.pp * t.cp;
  if (!stated.contains("dp") && stated.contains("nodes") && gpus > 0) {
    const i64 ranks = t.nodes * gpus;
    if (ranks % split != 0)
      return fail(fmt::format("dp = nodes x gpus_per_node / (tp x pp x cp) = {} / {} is not whole; state dp",
                              ranks, split));
    t.dp = ranks / split;
  }
  const i64 world = t.world();
  if (!stated.contains("nodes")) t.nodes = gpus > 0 ? (world + gpus - 1) / gpus : 1;
  if (stated.contains("gpus_per_node")) return {};
  if (world % t.nodes != 0)
    return fail(
        fmt::format("dp x tp x pp x cp = {} ranks do not share {} nodes evenly; correct them, or state "
                    "gpus_per_node",
                    world, t.nodes));
  t.gpus_per_node = world / t.nodes;
  return {};
}

Expected<void> complete_batch(Trial& t, const Stated& stated) {
  const i64 micro = t.dp * t.micro_batch_size;
  if (!stated.contains("grad_accum") && stated.contains("global_batch_size")) {
    if (t.global_batch_size % micro != 0)
      return fail(
          fmt::format("grad_accum = global_batch_size / (dp x micro_batch_size) = {} / ({} x {}) is not "
                      "whole; state grad_accum",
                      t.global_batch_size, t.dp, t.micro_batch_size));
    t.grad_accum = t.global_batch_size / micro;
  }
  if (stated.contains("global_batch_size")) return {};
  if (double(micro) * double(t.grad_accum) > 1e9)
    return fail(fmt::format("dp x micro_batch_size x grad_accum = {} x {} x {} is beyond any batch", t.dp,
                            t.micro_batch_size, t.grad_accum));
  t.global_batch_size = micro * t.grad_accum;
  return {};
}

}  // namespace

Expected<void> complete(Trial& t, const Stated& stated) {
  if (auto done = complete_ranks(t, stated); !done) return done;
  return complete_batch(t, stated);
}

bool batch_multiplies_out(const Trial& t) {
  return double(t.dp) * double(t.micro_batch_size) * double(t.grad_accum) == double(t.global_batch_size);
}

}  // namespace sweep::imports
