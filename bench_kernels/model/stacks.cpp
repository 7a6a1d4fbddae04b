#include "bench_kernels/model/stacks.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "bench_kernels/model/quantized_stacks.h"

namespace sweep::model {

std::int64_t Stack::rows() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.rows;
  return sum;
}

std::int64_t Stack::kept(const Part& part) const {
  return quantized ? quantized_bytes(part, columns) : part.rows * std::max<std::int64_t>(1, columns);
}

std::int64_t Stack::kept() const {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += kept(part);
  return sum;
}

at::Tensor Stack::view(const at::Tensor& flat) const {
  const at::Tensor run = flat.narrow(0, offset, elements());
  return columns ? run.view({rows(), columns}) : run;
}

at::Tensor Stack::view(std::size_t part, const at::Tensor& flat) const {
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < part; ++i) begin += parts[i].rows;
  return view(flat).narrow(0, begin, parts[part].real_rows());
}

}  // namespace sweep::model
