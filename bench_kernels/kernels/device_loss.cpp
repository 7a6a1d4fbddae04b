#include "bench_kernels/kernels/device_loss.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/device_launch.h"

namespace sweep::kernels::device {
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

}  // namespace

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

}  // namespace sweep::kernels::device
