#include "orchestrator/search/likeness.h"

#include <cmath>

namespace sweep::search {

const Likeness::Column& Likeness::with(std::size_t candidate) {
  constexpr double kReach = 4;  // doublings or other words after which a combination says little of another
  const auto [found, is_new] = columns_.try_emplace(candidate);
  Column& out = found->second;
  if (!is_new) return out;
  std::vector<double> sum(features_.size()), alone(features_.size());
  for (std::size_t axis = 0; axis < features_.axes(); ++axis) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const double d = features_.distance(axis, i, candidate);
      alone[i] += std::exp(-d / 2), sum[i] += d;
    }
  }
  const double axes = features_.axes() > 0 ? static_cast<double>(features_.axes()) : 1;
  out.prior.resize(sum.size()), out.near.resize(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    out.prior[i] = alone[i] / axes + std::exp(-sum[i] / kReach), out.near[i] = std::exp(-sum[i]);
  return out;
}

}  // namespace sweep::search
