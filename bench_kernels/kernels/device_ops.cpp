#include "bench_kernels/kernels/device_ops.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>

#include "bench_kernels/kernels/device_launch.h"

namespace sweep::kernels {
namespace {

std::atomic<unsigned> g_groups{kAllFused};
std::atomic<device::Launcher> g_launcher{nullptr};

}  // namespace

void set_fused(unsigned groups) {
  g_groups = groups;
}
bool fused(Fused group) {
  return (g_groups & static_cast<unsigned>(group)) != 0;
}

namespace device {

void set_launcher(Launcher launcher) {
  g_launcher = launcher;
}
bool has_launcher() {
  return g_launcher != nullptr;
}

bool aligned(std::initializer_list<at::Tensor> tensors, std::initializer_list<std::int64_t> strides) {
  for (const at::Tensor& t : tensors) {
    if (!t.defined()) continue;
    if (reinterpret_cast<std::uintptr_t>(t.const_data_ptr()) % kPackBytes != 0) return false;
    for (const std::int64_t stride : strides)
      if (stride % pack_of(t) != 0) return false;
  }
  return true;
}

void run(const at::Tensor& like, Launch launch) {
  if (like.is_meta() || launch.blocks == 0) return;
  launch.type = like.scalar_type();
  const Launcher launcher = g_launcher;
  TORCH_CHECK(launcher != nullptr, "nobody is here to launch the fused kernels");
  launcher(launch);
}

namespace {

const char* name_of(Activation kind, bool backward) {
  switch (kind) {
    case Activation::kSwiglu:
      return backward ? "swiglu_backward" : "swiglu";
    case Activation::kGeglu:
      return backward ? "geglu_backward" : "geglu";
    case Activation::kClampedSwiglu:
      return backward ? "clamped_swiglu_backward" : "clamped_swiglu";
    case Activation::kGeluExact:
      return backward ? "gelu_exact_backward" : "gelu_exact";
    case Activation::kRelu:
      return backward ? "relu_backward" : "relu";
    default:
      return backward ? "gelu_backward" : "gelu";
  }
}

void activate(Activation kind, const at::Tensor& in, const at::Tensor& out, bool backward) {
  if (in.is_meta()) return;
  const std::int64_t rows = out.size(0), n = out.size(1);
  const sweep::device::ActivationArgs args{at_of(in), at_of(out), rows, n};
  const bool packed = aligned({in, out}, {n});
  const std::int64_t once = in.numel() + out.numel();
  run(in, {name_of(kind, backward),
           {},
           packed,
           blocks_for(rows),
           threads_for(packed ? n / pack_of(in) : n),
           0,
           &args,
           once * static_cast<std::int64_t>(in.element_size()) * (backward ? 2 : 1)});
}

std::size_t room_of(const at::Tensor& statistics, std::int64_t elements) {
  return static_cast<std::size_t>(elements) * statistics.element_size();
}

}  // namespace

void activation(Activation kind, const at::Tensor& in, const at::Tensor& out) {
  activate(kind, in, out, false);
}
void activation_backward(Activation kind, const at::Tensor& in, const at::Tensor& grad) {
  activate(kind, in, grad, true);
}

void norm(const at::Tensor& x, const Norm& p, const at::Tensor& y, const NormStats& stats,
          const Start& start) {
  if (x.is_meta()) return;
  const std::int64_t rows = x.size(0), n = x.size(1);
  const sweep::device::NormArgs args{at_of(x),
                                     at_of(p.w),
                                     at_of(p.b),
                                     at_of(y),
                                     at_of(stats.mean),
                                     at_of(stats.rstd),
                                     at_of(start.bias),
                                     at_of(start.out),
                                     rows,
                                     n,
                                     p.eps,
                                     static_cast<float>(p.plus)};
  const bool packed = aligned({x, p.w, p.b, y, start.bias, start.out}, {n});
  const std::int64_t passes = start.out.defined() ? 3 : 2;
  run(x, {p.rms() ? "rms_norm" : "layer_norm",
          {},
          packed,
          blocks_for(rows),
          threads_for(packed ? n / pack_of(x) : n),
          room_of(stats.rstd, sweep::device::kWarp),
          &args,
          passes * x.numel() * static_cast<std::int64_t>(x.element_size())});
}

void sum_parts(const at::Tensor& partial, const GradOut& dw, const GradOut& db) {
  namespace d = sweep::device;
  constexpr int kThreads = d::kSumColumns * d::kSumGroups;
  const std::int64_t width = partial.size(1);
  const d::SumPartsArgs args{at_of(partial),  at_of(dw.grad), at_of(db.grad), partial.size(0),
                             dw.grad.numel(), dw.add ? 1 : 0, db.add ? 1 : 0};
  run(dw.grad, {"sum_parts",
                {},
                false,
                static_cast<unsigned>((width + d::kSumColumns - 1) / d::kSumColumns),
                kThreads,
                room_of(partial, kThreads),
                &args,
                bytes_of(partial)});
}

void norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm& p, const NormStats& stats,
                   const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw, const GradOut& db) {
  namespace d = sweep::device;
  const std::int64_t rows = x.size(0), n = x.size(1), width = p.rms() ? n : 2 * n;
  const std::int64_t parts = std::min<std::int64_t>(rows, d::kMostParts);
  const at::Tensor partial = at::empty({parts, width}, stats.rstd.options());
  if (x.is_meta() || rows == 0) {
    if (rows == 0 && !dw.add) at::Tensor(dw.grad).zero_();
    if (rows == 0 && db.grad.defined() && !db.add) at::Tensor(db.grad).zero_();
    return;
  }
  const std::size_t shared = room_of(partial, d::kWarp + width);
  const bool fits = shared <= static_cast<std::size_t>(d::kSharedBytes);
  const d::NormBackwardArgs args{at_of(dy),
                                 at_of(x),
                                 at_of(p.w),
                                 at_of(stats.mean),
                                 at_of(stats.rstd),
                                 at_of(residual),
                                 at_of(dx),
                                 at_of(partial),
                                 rows,
                                 n,
                                 static_cast<float>(p.plus),
                                 fits ? 1 : 0};
  const bool packed = aligned({dy, x, p.w, residual, dx}, {n});
  const std::int64_t passes = residual.defined() ? 4 : 3;
  const std::int64_t sums = partial.numel() * static_cast<std::int64_t>(partial.element_size());
  run(x, {p.rms() ? "rms_norm_backward" : "layer_norm_backward",
          {},
          packed,
          static_cast<unsigned>(parts),
          threads_for(packed ? n / pack_of(x) : n),
          fits ? shared : room_of(partial, d::kWarp),
          &args,
          passes * x.numel() * static_cast<std::int64_t>(x.element_size()) + sums});
  sum_parts(partial, dw, p.rms() ? GradOut() : db);
}

namespace {

// K divides half a head, and each row of each part and of the angles begins on 16 bytes.
bool packs(const sweep::device::RopeArgs& args, std::initializer_list<at::Tensor> tensors) {
  const std::int64_t half = args.head_dim / 2;
  return aligned(tensors, {half, args.q_stride, args.k_stride, args.v_stride, args.out_stride});
}

void turn(const at::Tensor& like, const sweep::device::RopeArgs& args, bool packed) {
  const std::int64_t heads = args.heads + args.kv_heads + args.v_heads;
  const std::int64_t pieces = heads * (args.head_dim / 2) / (packed ? pack_of(like) : 1);
  run(like, {"rope",
             {},
             packed,
             blocks_for(args.rows),
             threads_for(pieces),
             0,
             &args,
             2 * args.rows * heads * args.head_dim * static_cast<std::int64_t>(like.element_size())});
}

}  // namespace

void rope(const at::Tensor& rows, std::int64_t heads, std::int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, bool backward) {
  if (rows.is_meta()) return;
  const Index stride = rows.stride(0);
  sweep::device::RopeArgs args{};
  args.q = args.out = at_of(rows), args.cos = at_of(cos), args.sin = at_of(sin);
  args.q_stride = args.out_stride = stride;
  args.rows = rows.size(0), args.seq = cos.size(0);
  args.heads = static_cast<int>(heads), args.head_dim = static_cast<int>(head_dim);
  args.sign = backward ? -1 : 1;
  turn(rows, args, packs(args, {rows, cos, sin}));
}

bool join_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Angles& angles,
                const at::Tensor& rows) {
  if (rows.is_meta()) return true;
  const std::int64_t head_dim = q.size(3);
  for (const at::Tensor& t : {q, k, v})
    if (t.stride(3) != 1 || t.stride(2) != head_dim || t.stride(0) != t.size(1) * t.stride(1)) return false;
  if (head_dim % 2 != 0) return false;
  sweep::device::RopeArgs args{};
  args.q = at_of(q), args.k = at_of(k), args.v = at_of(v), args.out = at_of(rows);
  args.cos = at_of(angles.cos), args.sin = at_of(angles.sin);
  args.q_stride = q.stride(1), args.k_stride = k.stride(1), args.v_stride = v.stride(1);
  args.out_stride = rows.stride(0);
  args.rows = rows.size(0), args.seq = q.size(1);
  args.heads = static_cast<int>(q.size(2));
  args.kv_heads = args.v_heads = static_cast<int>(k.size(2));
  args.head_dim = static_cast<int>(head_dim);
  args.sign = -1;
  turn(rows, args, packs(args, {q, k, v, rows, angles.cos, angles.sin}));
  return true;
}

void adamw_eight_bit(const EightBitAdamW& a) {
  namespace d = sweep::device;
  const Index n = a.parameter.numel(), blocks = (n + d::kEightBitBlock - 1) / d::kEightBitBlock;
  const d::EightBitArgs args{at_of(a.parameter),  at_of(a.grad),
                             at_of(a.mean),       at_of(a.square),
                             at_of(a.mean_codes), at_of(a.square_codes),
                             at_of(a.maps),       n,
                             a.by.beta1,          a.by.beta2,
                             a.by.decay,          a.by.step_size,
                             a.by.root,           a.by.eps};
  const std::size_t element = a.parameter.scalar_type() == at::kDouble ? sizeof(double) : sizeof(float);
  const std::int64_t moments = a.mean_codes.defined() ? 4 * n : 16 * n;  // read and written
  run(a.parameter, {"adamw_eight_bit",
                    {},
                    false,
                    blocks_for(blocks),
                    d::kEightBitBlock,
                    element * (d::kWarp + 2 * d::kEightBitValues),
                    &args,
                    3 * n * static_cast<std::int64_t>(a.parameter.element_size()) + moments});
}

void nf4_dequantize(const Nf4& q, const Nf4Run& run, const at::Tensor& maps, const at::Tensor& out) {
  namespace d = sweep::device;
  const d::Nf4Args args{at_of(q.codes), at_of(q.scale_codes), at_of(q.scales), at_of(q.offset),
                        at_of(maps),    at_of(out),           run.rows,        run.blocks,
                        run.part,       run.part_stride,      run.whole,       run.whole_stride};
  constexpr Index kThreads = 256, kEach = 8;  // weights of a thread
  const Index blocks = run.rows * run.blocks, weights = blocks * d::kNf4Block;
  kernels::device::run(out, {"four_bit_weights",
                             {},
                             aligned({out}, {}),
                             blocks_for((weights / kEach + kThreads - 1) / kThreads),
                             kThreads,
                             sizeof(float) * (d::kEightBitValues + d::kNf4Values),
                             &args,
                             weights * static_cast<Index>(out.element_size()) + weights / 2 + blocks});
}

void round_to_eight(const at::Tensor& of, const at::Tensor& values, bool transposed,
                    const at::Tensor& scale) {
  namespace d = sweep::device;
  const Index rows = of.size(0), n = of.size(1), stride = of.stride(0);
  const Index parts = std::min<Index>(rows, d::kMostParts);
  const at::Tensor largest = at::empty({parts}, of.options().dtype(at::kFloat));
  if (of.is_meta()) return;
  const bool packed = aligned({of}, {n, stride});
  const std::int64_t read = of.numel() * static_cast<std::int64_t>(of.element_size());
  const std::size_t room = d::kWarp * (of.scalar_type() == at::kDouble ? sizeof(double) : sizeof(float));
  const unsigned threads = threads_for(packed ? n / pack_of(of) : n);
  const d::LargestArgs first{at_of(of), at_of(largest), rows, n, stride};
  run(of, {"largest_magnitude",
           {},
           packed,
           static_cast<unsigned>(parts),
           threads,
           room,
           &first,
           read + 4 * parts});
  const d::RoundArgs second{at_of(of),    at_of(largest), at_of(values),
                            at_of(scale), rows,           n,
                            stride,       parts,          values.scalar_type() == at::kFloat8_e5m2,
                            transposed};
  const Index tiles = ((rows + d::kTile - 1) / d::kTile) * ((n + d::kTile - 1) / d::kTile);
  constexpr unsigned kTileThreads = 4 * d::kTile;
  run(of, {"round_to_eight",
           {},
           packed,
           blocks_for(transposed ? tiles : rows),
           transposed ? kTileThreads : threads,
           room + (transposed ? d::kTile * (d::kTile + 1) : 0),
           &second,
           read + of.numel()});
}

}  // namespace device
}  // namespace sweep::kernels
