#include "bench_kernels/kernels/eight_bit.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench_kernels/kernels/device/args.h"
#include "bench_kernels/kernels/dispatch.h"

namespace sweep::kernels {
namespace {

constexpr std::int64_t kBlock = sweep::device::kEightBitBlock;

std::uint8_t nearest_code(const float* map, float x) {
  const float* above = std::upper_bound(map, map + sweep::device::kEightBitValues, x);
  if (above == map + sweep::device::kEightBitValues) return sweep::device::kEightBitValues - 1;
  if (above == map) return 0;
  return static_cast<std::uint8_t>(above - map - (x - above[-1] > *above - x ? 0 : 1));
}

// The numbers of one tensor as plain arrays.
template <class T>
struct Numbers {
  T* parameter;
  const T* grad;
  float *mean, *square;
  std::uint8_t *mean_codes, *square_codes;
  const float *mean_map, *square_map;
  float beta1, beta2, decay, step_size, root, eps;
  std::int64_t n;

  explicit Numbers(const EightBitAdamW& a)
      : parameter(data<T>(a.parameter)),
        grad(data<T>(a.grad)),
        mean(data<float>(a.mean)),
        square(data<float>(a.square)),
        mean_codes(data<std::uint8_t>(a.mean_codes)),
        square_codes(data<std::uint8_t>(a.square_codes)),
        mean_map(data<float>(a.maps)),
        square_map(mean_map + sweep::device::kEightBitValues),
        beta1(static_cast<float>(a.by.beta1)),
        beta2(static_cast<float>(a.by.beta2)),
        decay(static_cast<float>(a.by.decay)),
        step_size(static_cast<float>(a.by.step_size)),
        root(static_cast<float>(a.by.root)),
        eps(static_cast<float>(a.by.eps)),
        n(a.parameter.numel()) {}

  // m and v: the moments of the number i before and after.
  void update_one(std::int64_t i, float& m, float& v) const {
    const float g = static_cast<float>(grad[i]);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const float change = step_size * m / (root * std::sqrt(v) + eps);
    parameter[i] = static_cast<T>(decay * static_cast<float>(parameter[i]) - change);
  }
  void update_block(std::int64_t block) const {
    const std::int64_t first = block * kBlock, size = std::min(kBlock, n - first);
    float m[kBlock], v[kBlock], most_m = 0, most_v = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      m[i] = mean_map[mean_codes[first + i]] * mean[block];
      v[i] = square_map[square_codes[first + i]] * square[block];
      update_one(first + i, m[i], v[i]);
      most_m = std::max(most_m, std::fabs(m[i])), most_v = std::max(most_v, v[i]);
    }
    mean[block] = most_m, square[block] = most_v;
    for (std::int64_t i = 0; i < size; ++i) {
      mean_codes[first + i] = nearest_code(mean_map, most_m > 0 ? m[i] / most_m : 0);
      square_codes[first + i] = nearest_code(square_map, most_v > 0 ? v[i] / most_v : 0);
    }
  }
};

}  // namespace

// Seven tens of magnitude (1e-6 to 1): each has twice as many values as the one below it, the middles of equal steps
// from 0.1 to 1; with a sign half as many on each side. Zero and one are values too. The arithmetic is that of
// bitsandbytes' create_dynamic_map in fp32, whose ends of steps come from torch.linspace: bit by bit the same.
std::array<float, 256> dynamic_map(bool with_sign) {
  std::vector<float> values{0, 1};
  for (int power = 0; power < 7; ++power) {
    const int steps = (with_sign ? 1 : 2) << power;
    const float width = (1.0F - 0.1F) / static_cast<float>(steps),
                scale = static_cast<float>(std::pow(10.0, power - 6));
    const auto end_of = [&](int step) {  // rounded once, from the nearer end
      const auto at = static_cast<float>(step);
      if (step < (steps + 1) / 2) return std::fma(width, at, 0.1F);
      return std::fma(-width, static_cast<float>(steps) - at, 1.0F);
    };
    for (int i = 0; i < steps; ++i) {
      const float value = (end_of(i) + end_of(i + 1)) / 2.0F * scale;
      values.push_back(value);
      if (with_sign) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  std::array<float, 256> map{};
  std::copy(values.begin(), values.end(), map.begin());
  return map;
}

at::Tensor dynamic_maps(const at::TensorOptions& like) {
  const at::TensorOptions options = like.dtype(at::kFloat);
  at::Tensor maps = at::empty({2, sweep::device::kEightBitValues}, options);
  if (maps.is_meta()) return maps;
  for (const bool with_sign : {true, false}) {
    std::array<float, 256> map = dynamic_map(with_sign);
    maps[with_sign ? 0 : 1].copy_(at::from_blob(map.data(), {sweep::device::kEightBitValues}, at::kFloat));
  }
  return maps;
}

void adamw_eight_bit(const EightBitAdamW& a) {
  if (a.parameter.is_meta() || a.parameter.numel() == 0) return;  // the update in place allocates nothing
  if (a.parameter.is_cuda() || path() == Path::kDevice) return device::adamw_eight_bit(a);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kBFloat16, at::kHalf, a.parameter.scalar_type(), "adamw_eight_bit", [&] {
        const Numbers<scalar_t> numbers(a);
        if (numbers.mean_codes == nullptr) {
          for (std::int64_t i = 0; i < numbers.n; ++i)
            numbers.update_one(i, numbers.mean[i], numbers.square[i]);
          return;
        }
        over_rows((numbers.n + kBlock - 1) / kBlock, kBlock, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t block = begin; block < end; ++block) numbers.update_block(block);
        });
      });
}

}  // namespace sweep::kernels
