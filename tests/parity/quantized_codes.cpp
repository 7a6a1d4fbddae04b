// Codes of quantized numbers as the kernels make them, in files, for the checks against bitsandbytes. Standard input has a request
// a line, whose paths have no spaces, and one process answers all, since a start of LibTorch takes longer than an answer:
//   nf4 WEIGHTS FOLDER       weights (fp32) in 4 bits, a file for each part of kernels::Nf4
//   read CHECKPOINT TENSOR ROWS COLUMNS FOLDER   the same of a tensor that a checkpoint has in 4 bits
//   adamw8bit FOLDER COUNT   the COUNT-th update of AdamW in eight bits: reads and writes the files parameter, grad, mean, square
//                            (fp32), mean_codes and square_codes (a byte each)
#include <ATen/ATen.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include "bench_kernels/kernels/nf4.h"
#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/shape/quantized_base.h"
#include "bench_kernels/step/safetensors.h"
#include "tests/parity/tensor_file.h"

namespace {

namespace fs = std::filesystem;
using sweep::kernels::Nf4;
using sweep::testing::read_tensor, sweep::testing::write_tensor;

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
  const at::Tensor weights = read_tensor(file, at::kFloat), maps = sweep::kernels::nf4_maps(at::kFloat);
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

void update(const fs::path& folder, std::int64_t count) {
  using sweep::OptimizerKind;
  const at::Tensor parameter = read_tensor(folder / "parameter", at::kFloat),
                   grad = read_tensor(folder / "grad", at::kFloat),
                   mean = read_tensor(folder / "mean", at::kFloat),
                   square = read_tensor(folder / "square", at::kFloat),
                   mean_codes = read_tensor(folder / "mean_codes", at::kByte),
                   square_codes = read_tensor(folder / "square_codes", at::kByte);
  const sweep::optim::Lists lists{{parameter}, {grad}, {{mean}, {square}, {mean_codes}, {square_codes}}};
  sweep::optim::update(OptimizerKind::kAdamw8bit, {.lr = 1e-3}, count, lists,
                       sweep::optim::make_aid(OptimizerKind::kAdamw8bit, parameter));
  write_tensor(folder / "parameter", parameter), write_tensor(folder / "mean", mean);
  write_tensor(folder / "square", square), write_tensor(folder / "mean_codes", mean_codes);
  write_tensor(folder / "square_codes", square_codes);
}

bool answer(const std::string& request) {
  std::istringstream in(request);
  std::string what, file, tensor, folder;
  std::int64_t rows = 0, columns = 0, count = 0;
  in >> what;
  if (what == "read" && in >> file >> tensor >> rows >> columns >> folder)
    return read(file, tensor, rows, columns, folder);
  if (what == "nf4" && in >> file >> folder) return quantize(file, folder), true;
  if (what == "adamw8bit" && in >> folder >> count) return update(folder, count), true;
  return false;
}

}  // namespace

int main() {
  for (std::string request; std::getline(std::cin, request);)
    if (!answer(request)) return std::fprintf(stderr, "no answer to: %s\n", request.c_str()), 1;
  return 0;
}
