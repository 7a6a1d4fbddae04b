#include "base/cholesky.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace sweep {
namespace {

constexpr std::array<std::array<double, 3>, 3> kCovariance{{{4, 2, 0.6}, {2, 5, 1.5}, {0.6, 1.5, 3}}};
constexpr std::array<double, 3> kMeasured{1, -2, 0.5};

CholeskyFit fit() {
  return cholesky_fit(
      3, [](std::size_t i, std::size_t j) { return kCovariance[i][j]; },
      [](std::size_t i) { return kMeasured[i]; });
}

TEST(CholeskyFit, WeightsTimesTheCovarianceAreWhatWasMeasured) {
  const auto weights = fit().weights;
  for (std::size_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 3; ++j) sum += kCovariance[i][j] * weights[j];
    EXPECT_NEAR(sum, kMeasured[i], 1e-12);
  }
}

TEST(CholeskyFit, LikelihoodIsHalfTheQuadraticFormAndHalfTheLogarithmOfTheDeterminant) {
  const auto found = fit();
  double form = 0;
  for (std::size_t i = 0; i < 3; ++i) form += kMeasured[i] * found.weights[i];
  const double determinant = 4 * (5 * 3 - 1.5 * 1.5) - 2 * (2 * 3 - 1.5 * 0.6) + 0.6 * (2 * 1.5 - 5 * 0.6);
  EXPECT_NEAR(found.log_likelihood, -form / 2 - std::log(determinant) / 2, 1e-12);
}

TEST(CholeskyFit, ASingularCovarianceGivesFiniteWeights) {
  const auto found = cholesky_fit(
      2, [](std::size_t, std::size_t) { return 1.0; }, [](std::size_t) { return 1.0; });
  EXPECT_TRUE(std::isfinite(found.weights[0]) && std::isfinite(found.weights[1]));
}

}  // namespace
}  // namespace sweep
