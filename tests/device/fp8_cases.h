// The rounding of factors to eight bits (device/fp8.h of kernels) beside a search among all values of the format.
#pragma once
#include "tests/device/cases.h"

namespace device_test {

// The value of a code of eight bits, by the format's definition.
inline double eight_bits_value(int code, int mantissa, int bias) {
  const int exponent = (code & 0x7f) >> mantissa, fraction = code & ((1 << mantissa) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                         : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
  return code < 0x80 ? magnitude : -magnitude;
}

// Each code is of one of the values that lie nearest, of two the even one.
template <class T>
void fp8(const Case& c, bool wide, bool transposed) {
  const int mantissa = wide ? 2 : 3, bias = wide ? 15 : 7, last = wide ? 0x7b : 0x7e;
  const Index stride = c.n + 16;
  const Array<T> in(c.rows * stride, c.shift, 1, 1e-3);
  const Array<float> largest(c.blocks, 0, 2), scale(1, 0, 3);
  std::vector<unsigned char> codes(static_cast<std::size_t>(c.rows * c.n));
  const std::size_t room = sizeof(Wide<T>) * kWarp;
  const LargestArgs first{in.at(), largest.at(), c.rows, c.n, stride};
  host_kernels::run<T>("largest_magnitude", c.packed, {c.blocks, c.threads, room}, &first);
  const RoundArgs second{in.at(), largest.at(), codes.data(), scale.at(),   c.rows,
                         c.n,     stride,       c.blocks,     wide ? 1 : 0, transposed ? 1 : 0};
  host_kernels::run<T>("round_to_eight", c.packed,
                       {2, transposed ? 4 * kTile : c.threads, room + (transposed ? kTile * (kTile + 1) : 0)},
                       &second);
  double most = 0;
  for (Index r = 0; r < c.rows; ++r)
    for (Index i = 0; i < c.n; ++i) most = std::max(most, std::fabs(in[r * stride + i]));
  const double power = std::exp2(std::ceil(std::log2(most / (wide ? 57344 : 448))));
  expect_near(said<T>("round_to_eight scale", c), scale, {power}, 0);
  std::vector<double> got, want;
  for (Index r = 0; r < c.rows; ++r) {
    for (Index i = 0; i < c.n; ++i) {
      const double x = in[r * stride + i] / power;
      int best = 0;
      for (int code = 0; code <= last; ++code) {
        const double before = std::fabs(eight_bits_value(best, mantissa, bias) - std::fabs(x)),
                     now = std::fabs(eight_bits_value(code, mantissa, bias) - std::fabs(x));
        if (now < before || (now == before && code % 2 == 0)) best = code;
      }
      want.push_back(x < 0 ? best + 0x80 : best);
      got.push_back(codes[static_cast<std::size_t>(transposed ? i * c.rows + r : r * c.n + i)]);
    }
  }
  expect_near(said<T>(transposed ? "round_to_eight transposed" : "round_to_eight", c), Read{got}, want, 0);
}

}  // namespace device_test
