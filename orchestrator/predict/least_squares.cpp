#include <algorithm>
#include <cmath>
#include <utility>

#include "orchestrator/predict/fitter.h"

namespace sweep::predict {
namespace {

double loss(const Vector& residuals, double scale) {
  double sum = 0;
  for (const double r : residuals) sum += 2 * scale * scale * (std::sqrt(1 + r * r / (scale * scale)) - 1);
  return std::isfinite(sum) ? sum : 1e300;
}

// Solves a x = b in place, with pivoting; a is symmetric and positive but for rounding.
Vector solve(std::vector<Vector> a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t best = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[best][k])) best = i;
    std::swap(a[k], a[best]), std::swap(b[k], b[best]);
    if (a[k][k] == 0) continue;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] = a[k][k] == 0 ? 0 : b[k] / a[k][k];
  }
  return b;
}

struct Normal {
  std::vector<Vector> matrix;
  Vector right;
};

// J^T W J and -J^T W r, by forward differences.
Normal normal_equations(const Residuals& f, const Vector& x, const Vector& r, double scale) {
  const std::size_t n = x.size();
  std::vector<Vector> columns(n);
  for (std::size_t k = 0; k < n; ++k) {
    Vector moved = x;
    const double step = 1e-4 * std::max(0.1, std::abs(x[k]));
    moved[k] += step;
    f(moved, columns[k]);
    for (std::size_t i = 0; i < r.size(); ++i) columns[k][i] = (columns[k][i] - r[i]) / step;
  }
  Normal out{std::vector<Vector>(n, Vector(n, 0)), Vector(n, 0)};
  for (std::size_t i = 0; i < r.size(); ++i) {
    const double weight = 1 / std::sqrt(1 + r[i] * r[i] / (scale * scale));
    for (std::size_t k = 0; k < n; ++k) {
      out.right[k] -= weight * columns[k][i] * r[i];
      for (std::size_t j = 0; j <= k; ++j) out.matrix[k][j] += weight * columns[k][i] * columns[j][i];
    }
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t j = k + 1; j < n; ++j) out.matrix[k][j] = out.matrix[j][k];
  return out;
}

}  // namespace

Vector least_squares(const Residuals& f, Vector x, double scale, int most_rounds) {
  Vector r, tried;
  f(x, r);
  double best = loss(r, scale), damping = 1e-2;
  for (int round = 0; round < most_rounds; ++round) {
    const Normal normal = normal_equations(f, x, r, scale);
    const double before = best;
    for (int attempt = 0; attempt < 12; ++attempt) {
      auto matrix = normal.matrix;
      for (std::size_t k = 0; k < x.size(); ++k) matrix[k][k] += damping * (normal.matrix[k][k] + 1e-9);
      const Vector move = solve(std::move(matrix), normal.right);
      Vector next = x;
      for (std::size_t k = 0; k < x.size(); ++k) next[k] += std::clamp(move[k], -2.0, 2.0);
      f(next, tried);
      const double now = loss(tried, scale);
      if (now < best) {
        x = std::move(next), r = tried, best = now, damping = std::max(1e-7, damping / 4);
        break;
      }
      damping *= 4;
    }
    if (before - best < 1e-7 * before) break;
  }
  return x;
}

Vector deviations(const Residuals& f, const Vector& x, double scale) {
  Vector r;
  f(x, r);
  const Normal normal = normal_equations(f, x, r, scale);
  f(x, r);  // leaves f's owner at x
  Vector out;
  for (std::size_t k = 0; k < x.size(); ++k) {
    Vector unit(x.size(), 0);
    unit[k] = 1;
    out.push_back(scale * std::sqrt(std::max(0.0, solve(normal.matrix, std::move(unit))[k])));
  }
  return out;
}

}  // namespace sweep::predict
