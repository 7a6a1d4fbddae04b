// eight_bit_codes FOLDER COUNT: one update of AdamW in eight bits, the COUNT-th, of the files parameter, grad, mean, square (fp32),
// mean_codes and square_codes (a byte each), which it writes anew, for eight_bit_check.py.
#include <ATen/ATen.h>

#include <filesystem>
#include <string>

#include "bench_kernels/optim/optimizer.h"
#include "tests/parity/tensor_file.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  using namespace sweep;
  using testing::read_tensor, testing::write_tensor;
  const std::filesystem::path folder = argv[1];
  const at::Tensor parameter = read_tensor(folder / "parameter", at::kFloat),
                   grad = read_tensor(folder / "grad", at::kFloat),
                   mean = read_tensor(folder / "mean", at::kFloat),
                   square = read_tensor(folder / "square", at::kFloat),
                   mean_codes = read_tensor(folder / "mean_codes", at::kByte),
                   square_codes = read_tensor(folder / "square_codes", at::kByte);
  const optim::Lists lists{{parameter}, {grad}, {{mean}, {square}, {mean_codes}, {square_codes}}};
  optim::update(OptimizerKind::kAdamw8bit, {.lr = 1e-3}, std::stoll(argv[2]), lists,
                optim::make_aid(OptimizerKind::kAdamw8bit, parameter));
  write_tensor(folder / "parameter", parameter), write_tensor(folder / "mean", mean),
      write_tensor(folder / "square", square);
  write_tensor(folder / "mean_codes", mean_codes), write_tensor(folder / "square_codes", square_codes);
  return 0;
}
