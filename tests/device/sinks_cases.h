// Sinks by the fused kernels, beside double arithmetic: the log-sum-exp and the result, then the gradient's parts.
#pragma once
#include "tests/device/cases.h"

namespace device_test {

// Two sequences, log-sum-exps by head first, as the library's kernels have them, or by row.
template <class T>
void sinks(const Case& c, int heads, int head_dim, bool by_head) {
  using A = Wide<T>;
  const Index seq = c.rows, rows = 2 * seq, n = static_cast<Index>(heads) * head_dim;
  const Array<T> out(rows * n, c.shift, 1), dout(rows * n, c.shift, 2), sink(heads, 0, 3);
  const Array<A> lse(rows * heads, 0, 4), partial(c.blocks * heads, 0, 5), sums(heads, 0, 6);
  SinksArgs args{};
  args.sinks = sink.at(), args.dout = dout.at(), args.out = out.at(), args.lse = lse.at(),
  args.partial = partial.at();
  args.rows = rows, args.seq = seq, args.heads = heads, args.head_dim = head_dim;
  args.of_sequence = seq * heads, args.of_row = by_head ? 1 : heads, args.of_head = by_head ? seq : 1;
  const auto place = [&](Index r, int h) {
    return r / seq * args.of_sequence + r % seq * args.of_row + h * args.of_head;
  };
  std::vector<double> want = out.wide(), all = lse.wide();
  for (Index r = 0; r < rows; ++r)
    for (int h = 0; h < heads; ++h) {
      double& sum = all[static_cast<std::size_t>(place(r, h))];
      const double keys = std::exp(sum), share = keys / (keys + std::exp(sink[h]));
      sum = std::log(keys + std::exp(sink[h]));
      for (int i = 0; i < head_dim; ++i) want[static_cast<std::size_t>(r * n + h * head_dim + i)] *= share;
    }
  host_kernels::run<T>("sinks", c.packed, {c.blocks, c.threads, sizeof(A) * static_cast<std::size_t>(heads)},
                       &args);
  const double close = std::is_same_v<T, double> ? 1e-13 : 1e-5;  // what is kept is fp32
  expect_near(said<T>("sinks", c), out, want, tolerance<T>());
  expect_near(said<T>("sinks' log-sum-exp", c), lse, all, close);
  std::vector<double> grads(static_cast<std::size_t>(heads));
  for (Index r = 0; r < rows; ++r)
    for (int h = 0; h < heads; ++h) {
      double dot = 0;
      for (int i = 0; i < head_dim; ++i)
        dot += out[r * n + h * head_dim + i] * dout[r * n + h * head_dim + i];
      grads[static_cast<std::size_t>(h)] -= std::exp(sink[h] - lse[place(r, h)]) * dot;
    }
  host_kernels::run<T>("sinks_backward", c.packed, {c.blocks, c.threads, sizeof(A) * c.threads}, &args);
  const SumPartsArgs parts{partial.at(), sums.at(), nullptr, c.blocks, heads, 0, 0};
  host_kernels::run<A>("sum_parts", false,
                       {1, kSumColumns * kSumGroups, sizeof(A) * kSumColumns * kSumGroups}, &parts);
  expect_near(said<T>("sinks_backward", c), sums, grads, close);
}

}  // namespace device_test
