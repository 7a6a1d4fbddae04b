// NonnegativeFit: the linear combination of N terms, each with a factor of 0 or more, that comes nearest to
// measured times by their relative error. By trying every set of terms: N is 2 or 3.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace sweep::shape {

template <std::size_t N>
class NonnegativeFit {
 public:
  using Terms = std::array<double, N>;

  // REQUIRES: measured > 0.
  void add(const Terms& terms, double measured) {
    Terms row;
    for (std::size_t i = 0; i < N; ++i) row[i] = terms[i] / measured;
    rows_.push_back(row);
  }

  // All 0 without rows.
  Terms solve() const {
    Terms best{};
    double least = std::numeric_limits<double>::infinity();
    for (unsigned set = 1; set < (1u << N); ++set) {
      const auto x = solve(set);
      if (!x) continue;
      const double error = squares(*x);
      if (error < least * (1 - 1e-12)) best = *x, least = error;
    }
    return best;
  }

 private:
  double squares(const Terms& x) const {
    double sum = 0;
    for (const Terms& row : rows_) {
      double off = -1;
      for (std::size_t i = 0; i < N; ++i) off += row[i] * x[i];
      sum += off * off;
    }
    return sum;
  }

  // Normal equations over the terms of the set; columns are scaled, for their sizes differ by many powers of
  // ten. nullopt: they have no solution, or one with a negative factor.
  std::optional<Terms> solve(unsigned set) const {
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < N; ++i)
      if ((set & (1u << i)) != 0) of.push_back(i);
    const std::size_t n = of.size();
    Terms scale{};
    for (std::size_t i = 0; i < N; ++i) {
      for (const Terms& row : rows_) scale[i] = std::max(scale[i], std::abs(row[i]));
      if (scale[i] == 0) scale[i] = 1;
    }
    std::array<std::array<double, N + 1>, N> a{};
    for (const Terms& row : rows_)
      for (std::size_t i = 0; i < n; ++i) {
        const double value = row[of[i]] / scale[of[i]];
        for (std::size_t j = 0; j < n; ++j) a[i][j] += value * row[of[j]] / scale[of[j]];
        a[i][n] += value;
      }
    if (!eliminate(a, n)) return std::nullopt;
    Terms x{};
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = a[i][n] / a[i][i];
      if (!(factor >= 0)) return std::nullopt;
      x[of[i]] = factor / scale[of[i]];
    }
    return x;
  }

  static bool eliminate(std::array<std::array<double, N + 1>, N>& a, std::size_t n) {
    for (std::size_t c = 0; c < n; ++c) {
      std::size_t pivot = c;
      for (std::size_t r = c + 1; r < n; ++r)
        if (std::abs(a[r][c]) > std::abs(a[pivot][c])) pivot = r;
      if (std::abs(a[pivot][c]) < 1e-12) return false;
      std::swap(a[c], a[pivot]);
      for (std::size_t r = 0; r < n; ++r) {
        if (r == c) continue;
        const double factor = a[r][c] / a[c][c];
        for (std::size_t k = c; k <= n; ++k) a[r][k] -= factor * a[c][k];
      }
    }
    return true;
  }

  std::vector<Terms> rows_;
};

}  // namespace sweep::shape
