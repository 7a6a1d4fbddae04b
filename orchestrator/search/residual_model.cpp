#include "orchestrator/search/residual_model.h"

#include <algorithm>
#include <cmath>

#include "base/cholesky.h"

namespace sweep::search {
namespace {

constexpr double kCommon = 1.5;  // deviation of the logarithm of the common factor: nothing is known of it
// The deviation of one measurement. One in ten of the configurations in sweeps/data was slower than its
// neighbours without a known cause.
constexpr double kNoise = 0.1;
constexpr double kLikelySpread = 0.4, kSpreadWidth = 0.7;
constexpr double kSpreads[] = {0.12, 0.25, 0.5, 1.0};

}  // namespace

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

ResidualModel::ResidualModel(Likeness& likeness, std::vector<Observation> seen)
    : seen_(std::move(seen)), self_(likeness.self()) {
  for (const Observation& each : seen_) columns_.push_back(&likeness.with(each.candidate));
  double best = 0, likeliest = 0;
  for (const double spread : kSpreads) {
    const double off = std::log(spread / kLikelySpread) / kSpreadWidth;
    const double likely = factorize(spread) - off * off / 2;
    if (best == 0 || likely > likeliest) best = spread, likeliest = likely;
  }
  (void)factorize(best);
}

double ResidualModel::covariance(std::size_t candidate, std::size_t observation) const {
  return kCommon * kCommon + spread_ * spread_ * columns_[observation]->prior[candidate];
}

double ResidualModel::factorize(double spread) {
  spread_ = spread;
  auto fit = cholesky_fit(
      seen_.size(),
      [&](std::size_t i, std::size_t j) {
        return covariance(seen_[i].candidate, j) + (i == j ? kNoise * kNoise : 0);
      },
      [&](std::size_t i) { return seen_[i].residual; });
  lower_ = std::move(fit.lower), weights_ = std::move(fit.weights);
  return fit.log_likelihood;
}

// A block of candidates at a time, innermost: each of its sums is independent of the others, and all of them
// stay in the cache.
std::vector<Estimate> ResidualModel::at(std::span<const std::size_t> candidates) const {
  constexpr std::size_t kBlock = 256;
  const std::size_t n = seen_.size();
  std::vector<Estimate> out(candidates.size());
  std::vector<double> forward(n * kBlock), variance(kBlock);
  for (std::size_t begin = 0; begin < candidates.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, candidates.size() - begin);
    variance.assign(kBlock, kCommon * kCommon + spread_ * spread_ * self_);
    for (std::size_t i = 0; i < n; ++i) {
      double* row = &forward[i * kBlock];
      for (std::size_t j = 0; j < count; ++j) {
        row[j] = covariance(candidates[begin + j], i);
        out[begin + j].mean += row[j] * weights_[i];
      }
      for (std::size_t k = 0; k < i; ++k) {
        const double factor = lower_[i * n + k];
        const double* before = &forward[k * kBlock];
        for (std::size_t j = 0; j < count; ++j) row[j] -= factor * before[j];
      }
      for (std::size_t j = 0; j < count; ++j) row[j] /= lower_[i * n + i], variance[j] -= row[j] * row[j];
    }
    for (std::size_t j = 0; j < count; ++j) out[begin + j].deviation = std::sqrt(std::max(variance[j], 0.0));
  }
  return out;
}

}  // namespace sweep::search
