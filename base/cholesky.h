// The Cholesky factor of a covariance, the weights that explain measurements by it, and how likely they are: what a
// Gaussian process needs. Rasmussen and Williams, Gaussian Processes for Machine Learning, algorithm 2.1.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sweep {

struct CholeskyFit {
  std::vector<double> lower;    // n x n, row after row; above the diagonal: 0
  std::vector<double> weights;  // n: the inverse of the covariance times the measurements
  double log_likelihood = 0;    // without the term of n alone
};

// `covariance(i, j)` for j <= i < n, and `measured(i)`. A pivot below 1e-12, as of a covariance that is not
// positive definite, is taken as 1e-12.
template <class Covariance, class Measured>
CholeskyFit cholesky_fit(std::size_t n, const Covariance& covariance, const Measured& measured) {
  CholeskyFit out{std::vector<double>(n * n, 0), std::vector<double>(n, 0), 0};
  auto& [lower, weights, likely] = out;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = covariance(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= lower[i * n + k] * lower[j * n + k];
      lower[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / lower[j * n + j];
    }
    double forward = measured(i);
    for (std::size_t k = 0; k < i; ++k) forward -= lower[i * n + k] * weights[k];
    weights[i] = forward / lower[i * n + i];
    likely -= weights[i] * weights[i] / 2 + std::log(lower[i * n + i]);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) weights[i] -= lower[k * n + i] * weights[k];
    weights[i] /= lower[i * n + i];
  }
  return out;
}

}  // namespace sweep
