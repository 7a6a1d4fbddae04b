// Adafactor (Shazeer and Stern 2018, arXiv 1804.04235, algorithms 4 to 6, without momentum; lr, decay and the scale by
// the parameter's own size as in torch.optim.Adafactor): of a matrix it keeps the mean square of the gradient of each
// row and each column in the place of one for each number. It owns them, in the parameters' type.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "bench_kernels/optim/optimizer.h"

namespace sweep::optim {

// The place of a matrix, or with columns 0 of a vector, in a flat tensor.
struct Extent {
  std::int64_t offset = 0, rows = 0, columns = 0;
};

class Adafactor {
 public:
  // parameters: flat tensors; extents: of each what it is made of. Numbers of none are not updated.
  Adafactor(std::vector<at::Tensor> parameters, std::vector<std::vector<Extent>> extents, OptimizerOptions);
  // begin_step(), then each parameter once, in any order; the gradient is of its size and type.
  void begin_step() { ++count_; }
  void update(std::size_t parameter, const at::Tensor& grad);
  std::int64_t bytes() const;

 private:
  std::vector<at::Tensor> parameters_, squares_;  // squares: of each matrix the rows', then the columns'
  std::vector<std::vector<Extent>> extents_;
  OptimizerOptions options_;
  std::int64_t count_ = 0;
};

}  // namespace sweep::optim
