// eight_bit_codes FOLDER COUNT: one update of AdamW in eight bits, the COUNT-th, of the files parameter, grad, mean, square (fp32),
// mean_codes and square_codes (a byte each), which it writes anew, for eight_bit_check.py.
#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench_kernels/optim/optimizer.h"

namespace {

at::Tensor read(const std::filesystem::path& file, at::ScalarType type) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto n = static_cast<std::int64_t>(bytes.size() / c10::elementSize(type));
  return at::from_blob(bytes.data(), {n}, type).clone();
}

void write(const std::filesystem::path& file, const at::Tensor& t) {
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char*>(t.const_data_ptr()), static_cast<std::streamsize>(t.nbytes()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  using namespace sweep;
  const std::filesystem::path folder = argv[1];
  const at::Tensor parameter = read(folder / "parameter", at::kFloat),
                   grad = read(folder / "grad", at::kFloat), mean = read(folder / "mean", at::kFloat),
                   square = read(folder / "square", at::kFloat),
                   mean_codes = read(folder / "mean_codes", at::kByte),
                   square_codes = read(folder / "square_codes", at::kByte);
  const optim::Lists lists{{parameter}, {grad}, {{mean}, {square}, {mean_codes}, {square_codes}}};
  optim::update(OptimizerKind::kAdamw8bit, {.lr = 1e-3}, std::stoll(argv[2]), lists,
                optim::make_aid(OptimizerKind::kAdamw8bit, parameter));
  write(folder / "parameter", parameter), write(folder / "mean", mean), write(folder / "square", square);
  write(folder / "mean_codes", mean_codes), write(folder / "square_codes", square_codes);
  return 0;
}
