#include "orchestrator/predict/residual.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/cholesky.h"
#include "orchestrator/predict/layout.h"

namespace sweep::predict {
namespace {

constexpr std::size_t kMostPlaces = 128;
constexpr double kSpreads[] = {0.05, 0.1, 0.2}, kNoises[] = {0.02, 0.05, 0.1, 0.2};

double squared_distance(const ResidualPlace& a, const ResidualPlace& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double off = (a[i] - b[i]) / residual_axes()[i].length;
    sum += off * off;
  }
  return sum;
}

// Solves for the weights; returns the logarithm of the likelihood.
double solve_weights(TimeResidual& r) {
  const double variance = r.spread * r.spread, noise = r.noise * r.noise;
  auto fit = cholesky_fit(
      r.places.size(),
      [&](std::size_t i, std::size_t j) {
        return variance * std::exp(-squared_distance(r.places[i], r.places[j]) / 2) + (i == j ? noise : 0);
      },
      [&](std::size_t i) { return r.off[i]; });
  r.weights = std::move(fit.weights);
  return fit.log_likelihood;
}

using Seen = std::span<const std::pair<ResidualPlace, double>>;

// The places that lie farthest apart, and of each row the one that is nearest to it.
std::vector<std::size_t> farthest_apart(Seen rows, std::vector<std::size_t>& nearest) {
  std::vector<std::size_t> chosen;
  std::vector<double> away(rows.size(), std::numeric_limits<double>::max());
  nearest.assign(rows.size(), 0);
  for (std::size_t next = 0; chosen.size() < kMostPlaces && (chosen.empty() || away[next] > 0);) {
    chosen.push_back(next);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (const double d = squared_distance(rows[i].first, rows[next].first); d < away[i])
        away[i] = d, nearest[i] = chosen.size() - 1;
    next = static_cast<std::size_t>(std::ranges::max_element(away) - away.begin());
  }
  return chosen;
}

}  // namespace

const std::array<ResidualAxis, 11>& residual_axes() {
  static const std::array<ResidualAxis, 11> axes{{{"tp", 1},
                                                  {"micro_batch_size", 1},
                                                  {"pp", 3},
                                                  {"dp", 6},
                                                  {"grad_accum", 12},
                                                  {"hidden_size", 3},
                                                  {"layers", 6},
                                                  {"nodes", 1.5},
                                                  {"seq_len", 2},
                                                  {"zero", 1},
                                                  {"recompute", 0.5}}};
  return axes;
}

ResidualPlace residual_place(const Layout& l) {
  return {std::log2(l.ranks.tp),         std::log2(l.batch.micro_batch),
          std::log2(l.ranks.pp),         std::log2(l.ranks.dp),
          std::log2(l.batch.micros),     std::log2(l.model.hidden),
          std::log2(l.model.layers),     std::log2(l.ranks.nodes),
          std::log2(l.batch.sequence),   l.ranks.zero,
          l.passes.recompute ? 1.0 : 0.0};
}

void TimeResidual::solve() {
  (void)solve_weights(*this);
}

double TimeResidual::factor(const Layout& l, const std::string& on) const {
  if (places.empty() || on != hardware) return 1;
  const ResidualPlace here = residual_place(l);
  double sum = 0;
  for (std::size_t i = 0; i < places.size(); ++i)
    sum += weights[i] * std::exp(-squared_distance(here, places[i]) / 2);
  return std::exp(std::clamp(spread * spread * sum, -1.0, 1.0));
}

TimeResidual residual_of(Seen rows, const std::string& hardware) {
  TimeResidual out;
  if (rows.empty()) return out;
  out.hardware = hardware;
  std::vector<std::size_t> nearest;
  const auto chosen = farthest_apart(rows, nearest);
  std::vector<double> count(chosen.size(), 0);
  out.off.assign(chosen.size(), 0);
  for (const std::size_t i : chosen) out.places.push_back(rows[i].first);
  for (std::size_t i = 0; i < rows.size(); ++i) out.off[nearest[i]] += rows[i].second, ++count[nearest[i]];
  for (std::size_t i = 0; i < count.size(); ++i) out.off[i] /= count[i];
  double best = -std::numeric_limits<double>::max();
  TimeResidual tried = out;
  for (const double spread : kSpreads)
    for (const double noise : kNoises) {
      tried.spread = spread, tried.noise = noise;
      if (const double likely = solve_weights(tried); likely > best) best = likely, out = tried;
    }
  return out;
}

}  // namespace sweep::predict
