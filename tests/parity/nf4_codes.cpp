// nf4_codes WEIGHTS FOLDER: the bytes of weights (fp32) in 4 bits, a file for each part of kernels::Nf4, for nf4_check.py.
#include <ATen/ATen.h>

#include <filesystem>

#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/shape/quantized_base.h"
#include "tests/parity/tensor_file.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  using sweep::testing::write_tensor;
  const std::filesystem::path folder = argv[2];
  const at::Tensor weights = sweep::testing::read_tensor(argv[1], at::kFloat),
                   maps = sweep::kernels::nf4_maps(at::kFloat);
  const std::int64_t n = weights.numel();
  const sweep::shape::Nf4Extent e{n, n};
  const at::Tensor largest = at::empty({e.blocks()}, at::kFloat);
  const sweep::kernels::Nf4 q{at::empty({n / 2}, at::kByte),
                              at::empty({e.blocks()}, at::kByte),
                              at::empty({e.scales()}, at::kFloat),
                              at::empty({1}, at::kFloat),
                              {{1, e.blocks(), 0, 0, 0, 0}}};
  sweep::kernels::nf4_quantize(weights, maps, q.codes, largest);
  sweep::kernels::nf4_quantize_scales(largest, maps, q.scale_codes, q.scales, q.offset);
  const at::Tensor back = at::empty({n}, at::kFloat);
  sweep::kernels::nf4_dequantize(q, maps, back);
  write_tensor(folder / "codes", q.codes), write_tensor(folder / "scale_codes", q.scale_codes);
  write_tensor(folder / "scales", q.scales), write_tensor(folder / "offset", q.offset),
      write_tensor(folder / "back", back);
  return 0;
}
