// The operations that tokens index: the embedding and the cross-entropy, whole or over a share of the
// vocabulary.
#include <ATen/ATen.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/device_launch.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {

// The fused kernels of the loss (device/loss.h) as launches.
namespace device {
namespace {

sweep::device::CrossEntropyArgs loss_args(const at::Tensor& logits, const Labels& labels,
                                          const at::Tensor& lse) {
  sweep::device::CrossEntropyArgs args{};
  args.logits = at_of(logits), args.labels = at_of(labels.ids), args.lse = at_of(lse);
  args.rows = logits.size(0), args.n = logits.size(1), args.stride = logits.stride(0);
  return args;
}

// A block for each row, which is read in each pass, and written where it becomes its gradient.
void launch_rows(const at::Tensor& logits, const sweep::device::CrossEntropyArgs& args) {
  const bool packed = aligned({logits}, {args.stride});
  run(logits,
      {"cross_entropy",
       {},
       packed,
       blocks_for(args.rows),
       threads_for(packed ? args.n / pack_of(logits) : args.n),
       room_of_warps(logits),
       &args,
       (args.forward + 2 * args.backward) * logits.numel() * static_cast<Index>(logits.element_size())});
}

at::Tensor line_of(const at::Tensor& logits) {
  return at::empty({logits.size(0)}, logits.options().dtype(accumulate_type(logits.scalar_type())));
}

void cross_entropy(const at::Tensor& logits, const Labels& labels, double scale, const at::Tensor& total) {
  const at::Tensor lse = line_of(logits), picked = line_of(logits);
  if (logits.is_meta()) return;
  sweep::device::CrossEntropyArgs args = loss_args(logits, labels, lse);
  args.picked = at_of(picked), args.total = at_of(total), args.scale = scale;
  args.forward = args.backward = 1;
  launch_rows(logits, args);
  constexpr unsigned kThreads = sweep::device::kMostThreads;
  run(logits, {"add_losses",
               {},
               false,
               1,
               kThreads,
               room_of_warps(logits),
               &args,
               2 * bytes_of(lse) + bytes_of(labels.ids)});
}

void cross_entropy_share(const at::Tensor& logits, const Labels& labels, std::int64_t first,
                         const at::Tensor& lse, const at::Tensor& picked) {
  if (logits.is_meta()) return;
  sweep::device::CrossEntropyArgs args = loss_args(logits, labels, lse);
  args.picked = at_of(picked), args.first = first, args.forward = 1;
  launch_rows(logits, args);
}

void cross_entropy_backward(const at::Tensor& logits, const Labels& labels, const at::Tensor& lse,
                            double scale, std::int64_t first) {
  if (logits.is_meta()) return;
  sweep::device::CrossEntropyArgs args = loss_args(logits, labels, lse);
  args.scale = scale, args.first = first, args.backward = 1;
  launch_rows(logits, args);
}

}  // namespace
}  // namespace device

namespace {

TokenRows rows_of(const Tokens& t, const at::Tensor& table) {
  return {data<std::int64_t>(t.ids), data<std::int64_t>(t.places), t.first.value_or(0), table.size(0), t.seq};
}

template <class T>
LogitRows<T> logit_rows(const at::Tensor& logits, std::int64_t first) {
  return {data<T>(logits), first, logits.size(1), logits.stride(0)};
}

// Adds each position's gradients, summed over the sequences.
template <class T>
void positions_backward(const at::Tensor& dout, const Tokens& tokens, const GradOut& dpositions) {
  using A = typename RowKernels<T>::A;
  const std::int64_t rows = dout.size(0), n = dout.size(1), seq = tokens.seq;
  const auto* places = data<std::int64_t>(tokens.places);
  at::Tensor positions = dpositions.grad;
  if (!dpositions.add) positions.zero_();
  if (places && rows == seq) {  // each row has a place of its own, and several have the same
    const TokenRows of_places{places, nullptr, 0, positions.size(0), seq};
    at::parallel_for(0, n, 64, [&](std::int64_t first, std::int64_t last) {
      row_kernels<T>().embed_backward(data<T>(dout), of_places, data<T>(positions), rows, n, first, last);
    });
    return;
  }
  at::parallel_for(0, seq, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = begin; s < end; ++s) {
      std::vector<A> sums(static_cast<std::size_t>(n), A(0));
      row_kernels<T>().column_sums(data<T>(dout) + s * n, seq * n, sums.data(), 0, rows / seq, n);
      row_kernels<T>().store_sums(sums.data(), data<T>(positions) + (places ? places[s] : s) * n, n, true);
    }
  });
}

}  // namespace

void embed(const at::Tensor& table, const at::Tensor& positions, const Tokens& tokens,
           const at::Tensor& out) {
  if (way(out) == Way::kNothing) return;
  if (way(out) == Way::kPlain) return plain::embed(table, positions, tokens, out);
  by_type(out, [&]<class T>() {
    over_rows(out.size(0), out.size(1), [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().embed(data<T>(table), data<T>(positions), rows_of(tokens, table), data<T>(out), begin,
                             end, out.size(1));
    });
  });
}

void embed_backward(const at::Tensor& dout, const Tokens& tokens, const GradOut& dtable,
                    const GradOut& dpositions) {
  if (way(dout) == Way::kNothing) return;
  if (way(dout) == Way::kPlain) return plain::embed_backward(dout, tokens, dtable, dpositions);
  const std::int64_t rows = dout.size(0), n = dout.size(1);
  at::Tensor table = dtable.grad;
  if (!dtable.add) table.zero_();
  by_type(dout, [&]<class T>() {
    // Split by columns: each thread adds all rows in order, so a repeated token's sum never depends on the
    // threads.
    at::parallel_for(0, n, 64, [&](std::int64_t first, std::int64_t last) {
      row_kernels<T>().embed_backward(data<T>(dout), rows_of(tokens, table), data<T>(table), rows, n, first,
                                      last);
    });
    if (dpositions.grad.defined()) positions_backward<T>(dout, tokens, dpositions);
  });
}

// Row by row, so that the second pass finds the row in the cache.
void cross_entropy(const at::Tensor& logits, const Labels& labels, double scale, const at::Tensor& total) {
  const FusedWay by = way(logits, Fused::kLoss);
  if (by == FusedWay::kDevice) return device::cross_entropy(logits, labels, scale, total);
  if (by == FusedWay::kPlain) return plain::cross_entropy(logits, labels, scale, total);
  if (by == FusedWay::kNothing) return;
  const std::int64_t rows = logits.size(0);
  by_type(logits, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    std::vector<A> lse(static_cast<std::size_t>(rows));
    const auto sum =
        over_rows_summing<double>(rows, 1, [&](std::int64_t begin, std::int64_t end, double* out) {
          for (std::int64_t row = begin; row < end; ++row) {
            *out += row_kernels<T>().cross_entropy(logit_rows<T>(logits, 0), data<std::int64_t>(labels.ids),
                                                   lse.data(), nullptr, row, row + 1);
            row_kernels<T>().cross_entropy_backward(logit_rows<T>(logits, 0), data<std::int64_t>(labels.ids),
                                                    lse.data(), static_cast<A>(scale), row, row + 1);
          }
        });
    *data<double>(total) += sum[0];
  });
}

void cross_entropy_share(const at::Tensor& logits, const Labels& labels, std::int64_t first,
                         const at::Tensor& lse, const at::Tensor& picked) {
  const FusedWay by = way(logits, Fused::kLoss);
  if (by == FusedWay::kDevice) return device::cross_entropy_share(logits, labels, first, lse, picked);
  if (by == FusedWay::kPlain) return plain::cross_entropy_share(logits, labels, first, lse, picked);
  if (by == FusedWay::kNothing) return;
  const std::int64_t rows = logits.size(0), n = logits.size(1);
  by_type(logits, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    over_rows(rows, n, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().cross_entropy(logit_rows<T>(logits, first), data<std::int64_t>(labels.ids),
                                     data<A>(lse), data<A>(picked), begin, end);
    });
  });
}

void cross_entropy_weigh(const at::Tensor& lse, const at::Tensor& largest, const at::Tensor& sums) {
  if (way(lse) == Way::kNothing) return;
  at::Tensor weight = sums.select(0, 0);
  at::sub_out(weight, lse, largest);
  weight.exp_();
}

void cross_entropy_join(const at::Tensor& largest, const at::Tensor& sums, const at::Tensor& lse,
                        const Labels& labels, const at::Tensor& total) {
  if (way(lse) == Way::kNothing) return;
  std::optional<memory::ScratchScope> scratch;
  if (lse.is_cpu()) scratch.emplace();
  at::Tensor joined = lse, sum = total;
  at::log_out(joined, sums.select(0, 0));
  joined.add_(largest);
  at::Tensor each = lse.sub(sums.select(0, 1));
  if (labels.holes) each.masked_fill_(labels.ids.lt(0), 0.0);
  sum.add_(each.to(total.scalar_type()).sum());
}

void cross_entropy_backward(const at::Tensor& logits, const Labels& labels, const at::Tensor& lse,
                            double scale, std::int64_t first) {
  const FusedWay by = way(logits, Fused::kLoss);
  if (by == FusedWay::kDevice) return device::cross_entropy_backward(logits, labels, lse, scale, first);
  if (by == FusedWay::kPlain) return plain::cross_entropy_backward(logits, labels, lse, scale, first);
  if (by == FusedWay::kNothing) return;
  const std::int64_t rows = logits.size(0), n = logits.size(1);
  by_type(logits, [&]<class T>() {
    using A = typename RowKernels<T>::A;
    over_rows(rows, n, [&](std::int64_t begin, std::int64_t end) {
      row_kernels<T>().cross_entropy_backward(logit_rows<T>(logits, first), data<std::int64_t>(labels.ids),
                                              data<A>(lse), static_cast<A>(scale), begin, end);
    });
  });
}

}  // namespace sweep::kernels
