// A layer of experts by the fused kernels, beside double arithmetic: router, its gradient, weighted sums and theirs.
#pragma once
#include "tests/device/cases.h"

namespace device_test {

struct RouterCase {
  Index experts, choices;
  bool sigmoid, normalized, shares;  // shares: every token has a further gradient of the probabilities
};

// Each token's choices: one expert after another, from one that differs from token to token.
inline std::vector<Index> chosen_of(Index tokens, const RouterCase& r) {
  std::vector<Index> chosen;
  for (Index t = 0; t < tokens; ++t)
    for (Index j = 0; j < r.choices; ++j) chosen.push_back((3 * t + j) % r.experts);
  return chosen;
}

template <class T>
void routers(const Case& c, const RouterCase& r) {
  using A = Wide<T>;
  const Index E = r.experts, k = r.choices;
  constexpr double kScale = 1.5;
  const auto chosen = chosen_of(c.rows, r);
  const Array<T> logits(c.rows * E, c.shift, 1), dlogits(c.rows * E, c.shift, 2);
  const Array<A> probs(c.rows * E, 0, 3), weights(c.rows * k, 0, 4), dweights(c.rows * k, 0, 5),
      dprobs(E, 0, 6);
  std::vector<double> p, w, d;
  for (Index t = 0; t < c.rows; ++t) {
    double all = 0, sum = 0, shared = 0, mean = 0;
    for (Index e = 0; e < E; ++e) all += std::exp(logits[t * E + e]);
    const auto prob = [&](Index e) {
      const double x = std::exp(logits[t * E + e]);
      return r.sigmoid ? x / (1 + x) : x / all;
    };
    const auto of = [&](Index j) { return chosen[static_cast<std::size_t>(t * k + j)]; };
    for (Index j = 0; j < k; ++j) sum += prob(of(j));
    if (!r.normalized) sum = 1;
    std::vector<double> grad;
    for (Index e = 0; e < E; ++e) p.push_back(prob(e)), grad.push_back(r.shares ? dprobs[e] : 0);
    for (Index j = 0; j < k; ++j) {
      w.push_back(kScale * prob(of(j)) / sum);
      if (r.normalized) shared += dweights[t * k + j] * w.back();
    }
    for (Index j = 0; j < k; ++j)
      grad[static_cast<std::size_t>(of(j))] += (kScale * dweights[t * k + j] - shared) / sum;
    for (Index e = 0; e < E; ++e) mean += r.sigmoid ? 0 : grad[static_cast<std::size_t>(e)] * prob(e);
    for (Index e = 0; e < E; ++e)
      d.push_back((grad[static_cast<std::size_t>(e)] - mean) * prob(e) * (r.sigmoid ? 1 - prob(e) : 1));
  }
  RouterArgs args{};
  args.logits = logits.at(), args.chosen = chosen.data(), args.probs = probs.at(),
  args.weights = weights.at();
  args.tokens = c.rows, args.experts = E, args.choices = k;
  args.scale = kScale, args.sigmoid = r.sigmoid, args.normalized = r.normalized;
  host_kernels::run<T>("router", false, {c.blocks, c.threads, 0}, &args);
  const double allowed = std::is_same_v<T, double> ? tolerance<T>() : 1e-5;  // what is kept is fp32
  expect_near(said<T>("router", c), probs, p, allowed);
  expect_near(said<T>("router weights", c), weights, w, allowed);
  args.dweights = dweights.at(), args.dlogits = dlogits.at();
  args.dprobs = r.shares ? dprobs.at() : nullptr;
  host_kernels::run<T>("router_backward", false, {c.blocks, c.threads, 0}, &args);
  expect_near(said<T>("router_backward", c), dlogits, d, std::max(tolerance<T>(), allowed));
}

// Each fifth choice was not sent.
template <class T>
void combines(const Case& c, Index choices) {
  using A = Wide<T>;
  const Index all = c.rows * choices;
  std::vector<Index> places;
  Index sent = 0;
  for (Index i = 0; i < all; ++i) places.push_back(i % 5 == 3 ? -1 : sent++);
  for (Index i = 0; i + 1 < all; i += 2)
    std::swap(places[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(i + 1)]);
  const Array<T> rows(sent * c.n, c.shift, 1), base(c.rows * c.n, c.shift, 2), to(c.rows * c.n, c.shift, 3),
      sum(c.rows * c.n, c.shift, 4);
  const Array<A> weights(all, 0, 5), dweights(all, 0, 6);
  std::vector<double> want = base.wide(), plain(want.size()), dw, drows(static_cast<std::size_t>(sent * c.n));
  for (Index choice = 0; choice < all; ++choice) {
    const Index place = places[static_cast<std::size_t>(choice)], token = choice / choices;
    double dot = 0;
    for (Index i = 0; i < c.n && place >= 0; ++i) {
      const auto at = static_cast<std::size_t>(token * c.n + i);
      want[at] += weights[choice] * rows[place * c.n + i], plain[at] += rows[place * c.n + i];
      dot += base[token * c.n + i] * rows[place * c.n + i];
      drows[static_cast<std::size_t>(place * c.n + i)] = weights[choice] * base[token * c.n + i];
    }
    dw.push_back(dot);
  }
  const Shape shape{c.blocks, c.threads, sizeof(A) * kWarp};
  const CombineArgs weighted{places.data(), weights.at(), base.at(), rows.at(),
                             to.at(),       c.rows,       choices,   c.n};
  host_kernels::run<T>("combine", c.packed, shape, &weighted);
  expect_near(said<T>("combine", c), to, want, tolerance<T>());
  const CombineArgs summed{places.data(), nullptr, nullptr, rows.at(), sum.at(), c.rows, choices, c.n};
  host_kernels::run<T>("combine", c.packed, shape, &summed);
  expect_near(said<T>("combine without weights", c), sum, plain, tolerance<T>());
  const CombineArgs back{places.data(), weights.at(), base.at(), rows.at(),
                         dweights.at(), c.rows,       choices,   c.n};
  host_kernels::run<T>("combine_backward", c.packed, shape, &back);
  expect_near(said<T>("combine_backward", c), rows, drows, tolerance<T>());
  expect_near(said<T>("combine_backward weights", c), dweights, dw, std::is_same_v<T, double> ? 1e-12 : 1e-5);
}

// Groups of which one has no rows, and one most of them.
template <class T>
void group_biases(const Case& c) {
  const std::vector<int> ends{2, 2, static_cast<int>(c.rows) - 1, static_cast<int>(c.rows)};
  const Index groups = static_cast<Index>(ends.size());
  const Array<T> rows(c.rows * c.n, c.shift, 1), bias(groups * c.n, c.shift, 2), grad(groups * c.n, 0, 3);
  std::vector<double> want = rows.wide(), sums = grad.wide();
  Index group = 0;
  for (Index r = 0; r < c.rows; ++r) {
    while (ends[static_cast<std::size_t>(group)] <= r) ++group;
    for (Index i = 0; i < c.n; ++i)
      want[static_cast<std::size_t>(r * c.n + i)] += bias[group * c.n + i],
          sums[static_cast<std::size_t>(group * c.n + i)] += rows[r * c.n + i];
  }
  GroupBiasArgs args{ends.data(), rows.at(), grad.at(), c.rows, c.n, groups, 1};
  const Index pack = c.packed ? 16 / static_cast<Index>(sizeof(T)) : 1, columns = kSumColumns * pack;
  constexpr unsigned kThreads = kSumColumns * kSumGroups;
  host_kernels::run<T>("sum_group_bias", c.packed,
                       {static_cast<unsigned>(groups * ((c.n + columns - 1) / columns)), kThreads,
                        sizeof(Wide<T>) * kThreads * static_cast<std::size_t>(pack)},
                       &args);
  expect_near(said<T>("sum_group_bias", c), grad, sums, tolerance<T>());
  args.bias = bias.at();
  host_kernels::run<T>("add_group_bias", c.packed, {c.blocks, c.threads, 0}, &args);
  expect_near(said<T>("add_group_bias", c), rows, want, tolerance<T>());
}

}  // namespace device_test
