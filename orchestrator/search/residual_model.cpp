#include "orchestrator/search/residual_model.h"

#include <cmath>

namespace sweep::search {
namespace {

constexpr double kCommon = 1.5;  // of the logarithm of the common factor: nothing is known of it
// Of one measurement. Of the configurations in sweeps/data one in ten was slower than its neighbours without
// a known cause.
constexpr double kNoise = 0.1;
constexpr double kLikelySpread = 0.4, kSpreadWidth = 0.7;
constexpr double kSpreads[] = {0.12, 0.25, 0.5, 1.0};
constexpr double kReach = 4;  // doublings or other words after which a combination says little of another

}  // namespace

ResidualModel::ResidualModel(const Features& features, std::vector<Observation> seen)
    : features_(features), seen_(std::move(seen)) {
  double best = 0, likeliest = 0;
  for (const double spread : kSpreads) {
    const double off = std::log(spread / kLikelySpread) / kSpreadWidth;
    const double likely = factorize(spread) - off * off / 2;
    if (best == 0 || likely > likeliest) best = spread, likeliest = likely;
  }
  (void)factorize(best);
}

double ResidualModel::covariance(std::size_t a, std::size_t b) const {
  double alone = 0, sum = 0;
  for (std::size_t axis = 0; axis < features_.axes(); ++axis) {
    const double d = features_.distance(axis, a, b);
    alone += std::exp(-d / 2), sum += d;
  }
  if (features_.axes() > 0) alone /= static_cast<double>(features_.axes());
  return kCommon * kCommon + spread_ * spread_ * (alone + std::exp(-sum / kReach));
}

double ResidualModel::factorize(double spread) {
  spread_ = spread;
  const std::size_t n = seen_.size();
  lower_.assign(n * n, 0), weights_.assign(n, 0);
  double likely = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = covariance(seen_[i].candidate, seen_[j].candidate) + (i == j ? kNoise * kNoise : 0);
      for (std::size_t k = 0; k < j; ++k) sum -= lower_[i * n + k] * lower_[j * n + k];
      lower_[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / lower_[j * n + j];
    }
    double forward = seen_[i].residual;
    for (std::size_t k = 0; k < i; ++k) forward -= lower_[i * n + k] * weights_[k];
    weights_[i] = forward / lower_[i * n + i];
    likely -= weights_[i] * weights_[i] / 2 + std::log(lower_[i * n + i]);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) weights_[i] -= lower_[k * n + i] * weights_[k];
    weights_[i] /= lower_[i * n + i];
  }
  return likely;
}

Estimate ResidualModel::at(std::size_t candidate) const {
  const std::size_t n = seen_.size();
  Estimate out;
  double variance = covariance(candidate, candidate);
  std::vector<double> forward(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double c = covariance(candidate, seen_[i].candidate);
    out.mean += c * weights_[i];
    forward[i] = c;
    for (std::size_t k = 0; k < i; ++k) forward[i] -= lower_[i * n + k] * forward[k];
    forward[i] /= lower_[i * n + i];
    variance -= forward[i] * forward[i];
  }
  out.deviation = std::sqrt(std::max(variance, 0.0));
  return out;
}

}  // namespace sweep::search
