// The step's fused kernels of a device (device/kernels.h): how an operation becomes a launch. Who can run
// kernels says so with set_launcher: the GPU plug-in (NVRTC and the driver), or a test (the CPU shim).
#pragma once
#include <cstddef>
#include <cstdint>

#include "bench_kernels/kernels/eight_bit.h"
#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/kernels/ops.h"

namespace sweep::kernels {

// Groups of kernels that can be switched off, all on by default; one setting per process. kUpdate: AdamW of lists.
enum class Fused : unsigned { kNorm = 1, kRope = 2, kMlp = 4, kLoss = 8, kUpdate = 16 };
inline constexpr unsigned kAllFused = 31;
void set_fused(unsigned groups);
bool fused(Fused);

namespace device {

// One launch on the current stream. args is the kernel's struct of device/args.h.
struct Launch {
  const char* kernel;  // a name of SWEEP_DEVICE_KERNELS
  at::ScalarType type = at::kFloat;
  bool packed = false;  // 16 bytes at once
  unsigned blocks = 0, threads = 0;
  std::size_t shared = 0;
  const void* args = nullptr;
  std::int64_t bytes = 0;  // bytes that it reads and writes
};
using Launcher = void (*)(const Launch&);
void set_launcher(Launcher);
bool has_launcher();

void norm(const at::Tensor& x, const Norm&, const at::Tensor& y, const NormStats&, const Start&);
void norm_backward(const at::Tensor& dy, const at::Tensor& x, const Norm&, const NormStats&,
                   const at::Tensor& residual, const at::Tensor& dx, const GradOut& dw, const GradOut& db);
void activation(Activation, const at::Tensor& in, const at::Tensor& out);
void activation_backward(Activation, const at::Tensor& in, const at::Tensor& grad);
void rope(const at::Tensor& rows, std::int64_t heads, std::int64_t head_dim, const at::Tensor& cos,
          const at::Tensor& sin, bool backward);
// Rows of q, k and v, each [B, S, heads, head_dim], become rows of all three; q and k turn back by the angles
// (undefined: they do not). False: these strides are not its own, and nothing was done.
bool join_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Angles&,
                const at::Tensor& rows);
void adamw_eight_bit(const EightBitAdamW&);
void nf4_dequantize(const Nf4&, const Nf4Run&, const at::Tensor& maps, const at::Tensor& out);
// values (eight bits, as `of` lies or its transpose) times scale (one fp32) is close to `of`, whose rows have their
// elements side by side. scale is the least power of two with which no value is out of range.
void round_to_eight(const at::Tensor& of, const at::Tensor& values, bool transposed, const at::Tensor& scale);

}  // namespace device
}  // namespace sweep::kernels
