#include "bench_kernels/shape/parallel_dims.h"

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <utility>

namespace sweep::shape {
namespace {

// The product, or nothing when it does not fit 64 bits.
std::optional<i64> product(std::initializer_list<i64> factors) {
  i64 result = 1;
  for (const i64 f : factors)
    if (__builtin_mul_overflow(result, f, &result)) return std::nullopt;
  return result;
}

}  // namespace

Expected<ParallelDims> ParallelDims::make(const Trial& t) {
  const std::pair<const char*, i64> degrees[] = {{"dp", t.dp},
                                                 {"tp", t.tp},
                                                 {"pp", t.pp},
                                                 {"cp", t.cp},
                                                 {"ep", t.ep},
                                                 {"nodes", t.nodes},
                                                 {"gpus_per_node", t.gpus_per_node}};
  for (const auto& [name, value] : degrees)
    if (value < 1) return fail(fmt::format("{} = {}, but a degree is at least 1", name, value));
  const auto world = product({t.dp, t.tp, t.pp, t.cp});
  const auto placed = product({t.nodes, t.gpus_per_node});
  if (!world || !placed)
    return fail(fmt::format("dp {} x tp {} x pp {} x cp {} on {} nodes x {} ranks is beyond 64 bits", t.dp,
                            t.tp, t.pp, t.cp, t.nodes, t.gpus_per_node));
  if (*world != *placed)
    return fail(fmt::format("dp {} x tp {} x pp {} x cp {} = {} ranks, but nodes {} x gpus_per_node {} = {}",
                            t.dp, t.tp, t.pp, t.cp, *world, t.nodes, t.gpus_per_node, *placed));
  if ((t.dp * t.cp) % t.ep != 0)
    return fail(fmt::format("ep {} does not divide dp {} x cp {} = {}", t.ep, t.dp, t.cp, t.dp * t.cp));
  return ParallelDims{t.dp, t.tp, t.pp, t.cp, t.ep};
}

}  // namespace sweep::shape
