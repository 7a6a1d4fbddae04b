// nf4_codes WEIGHTS FOLDER: the bytes of weights (fp32) in 4 bits, a file for each part of kernels::Nf4, for nf4_check.py.
#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/shape/quantized_base.h"

namespace {

void write(const std::filesystem::path& file, const at::Tensor& t) {
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char*>(t.const_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::filesystem::path folder = argv[2];
  std::ifstream in(argv[1], std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto n = static_cast<std::int64_t>(bytes.size() / sizeof(float));
  const sweep::shape::Nf4Extent e{n, n};
  const at::Tensor weights = at::from_blob(bytes.data(), {n}, at::kFloat),
                   maps = sweep::kernels::nf4_maps(at::kFloat);
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
  write(folder / "codes", q.codes), write(folder / "scale_codes", q.scale_codes);
  write(folder / "scales", q.scales), write(folder / "offset", q.offset), write(folder / "back", back);
  return 0;
}
