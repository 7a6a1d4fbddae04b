// nf4_codes WEIGHTS FOLDER: the bytes of weights (fp32) in 4 bits, a file for each part of kernels::Nf4, for nf4_check.py.
// nf4_codes CHECKPOINT TENSOR ROWS COLUMNS FOLDER: the same of a tensor that a checkpoint has in 4 bits, as the step reads it.
#include <ATen/ATen.h>

#include <filesystem>
#include <string>

#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/step/safetensors.h"
#include "tests/parity/tensor_file.h"

namespace {

namespace fs = std::filesystem;
using sweep::kernels::Nf4;
using sweep::testing::write_tensor;

Nf4 room_for(std::int64_t weights) {
  const sweep::shape::Nf4Extent e{weights, weights};
  const auto room = [](std::int64_t n, at::ScalarType type) { return at::empty({n}, type); };
  return {room(weights / 2, at::kByte),
          room(e.blocks(), at::kByte),
          room(e.scales(), at::kFloat),
          room(1, at::kFloat),
          {{1, e.blocks(), 0, 0, 0, 0}}};
}

void write(const fs::path& folder, const Nf4& q, const at::Tensor& back) {
  write_tensor(folder / "codes", q.codes), write_tensor(folder / "scale_codes", q.scale_codes);
  write_tensor(folder / "scales", q.scales), write_tensor(folder / "offset", q.offset);
  write_tensor(folder / "back", back);
}

void quantize(const fs::path& file, const fs::path& folder) {
  const at::Tensor weights = sweep::testing::read_tensor(file, at::kFloat),
                   maps = sweep::kernels::nf4_maps(at::kFloat);
  const Nf4 q = room_for(weights.numel());
  const at::Tensor largest = at::empty({q.scale_codes.numel()}, at::kFloat), back = at::empty_like(weights);
  sweep::kernels::nf4_quantize(weights, maps, q.codes, largest);
  sweep::kernels::nf4_quantize_scales(largest, maps, q.scale_codes, q.scales, q.offset);
  sweep::kernels::nf4_dequantize(q, maps, back);
  write(folder, q, back);
}

bool read(const fs::path& checkpoint, const std::string& tensor, std::int64_t rows, std::int64_t columns,
          const fs::path& folder) {
  const auto opened = sweep::step::Checkpoint::open(checkpoint);
  if (!opened) return false;
  const sweep::model::Part part{tensor, rows, {}};
  const Nf4 q = room_for(rows * columns);
  const at::Tensor back = at::empty({rows, columns}, at::kFloat);
  opened->copy(part, back);
  if (!opened->copy_codes(part, q)) return false;
  write(folder, q, back);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6) return read(argv[1], argv[2], std::stoll(argv[3]), std::stoll(argv[4]), argv[5]) ? 0 : 1;
  if (argc != 3) return 2;
  quantize(argv[1], argv[2]);
  return 0;
}
