#include "bench_kernels/optim/adafactor.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace sweep::optim {
namespace {

constexpr double kLeastSquare = 1e-30, kLeastScale = 1e-3, kDecay = -0.8, kClip = 1;

at::Tensor mean_square(const at::Tensor& t) {
  return at::linalg_vector_norm(t).square_().div_(static_cast<double>(t.numel()));
}

// The mean square of each row (dimension 1) or column (0).
at::Tensor mean_squares(const at::Tensor& t, std::int64_t dimension) {
  return at::linalg_vector_norm(t, 2, {dimension})
      .square_()
      .div_(static_cast<double>(t.size(dimension)))
      .add_(kLeastSquare);
}

// The gradient over its expected size, which the mean squares of its row and its column tell. One temporary of the
// matrix's size.
at::Tensor scaled_matrix(const at::Tensor& grad, const at::Tensor& rows, const at::Tensor& columns,
                         double fresh) {
  rows.lerp_(mean_squares(grad, 1), fresh);
  columns.lerp_(mean_squares(grad, 0), fresh);
  const at::Tensor of_row = rows.div(rows.mean()).rsqrt_(), of_column = columns.rsqrt();
  return at::mul(of_row.unsqueeze(1), of_column.unsqueeze(0)).mul_(grad);
}

at::Tensor scaled_vector(const at::Tensor& grad, const at::Tensor& squares, double fresh) {
  squares.lerp_(grad.square().add_(kLeastSquare), fresh);
  return squares.rsqrt().mul_(grad);
}

}  // namespace

Adafactor::Adafactor(std::vector<at::Tensor> parameters, std::vector<std::vector<Extent>> extents,
                     OptimizerOptions options)
    : parameters_(std::move(parameters)), extents_(std::move(extents)), options_(options) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::int64_t kept = 0;
    for (const Extent& e : extents_[i]) kept += e.rows + e.columns;
    squares_.push_back(at::zeros({kept}, parameters_[i].options()));
  }
}

void Adafactor::update(std::size_t i, const at::Tensor& grads) {
  const at::NoGradGuard no_grad;
  const double lr = options_.lr * options_.adafactor_scale, count = static_cast<double>(count_);
  const double rate = std::min(lr, 1 / std::sqrt(count)), fresh = std::pow(count, kDecay);
  std::int64_t at = 0;
  for (const Extent& e : extents_[i]) {
    const auto of = [&](const at::Tensor& flat) {
      const at::Tensor numbers = flat.narrow(0, e.offset, e.rows * std::max<std::int64_t>(1, e.columns));
      return e.columns > 0 ? numbers.view({e.rows, e.columns}) : numbers;
    };
    const at::Tensor parameter = of(parameters_[i]), grad = of(grads);
    const at::Tensor first = squares_[i].narrow(0, at, e.rows),
                     second = squares_[i].narrow(0, at + e.rows, e.columns);
    at += e.rows + e.columns;
    const at::Tensor scale = mean_square(parameter).sqrt_().clamp_min_(kLeastScale).mul_(rate);
    const at::Tensor update =
        e.columns > 0 ? scaled_matrix(grad, first, second, fresh) : scaled_vector(grad, first, fresh);
    scale.div_(mean_square(update).sqrt_().div_(kClip).clamp_min_(1));
    parameter.mul_(1 - lr * options_.weight_decay).sub_(update.mul_(scale));
  }
}

std::int64_t Adafactor::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor& squares : squares_) sum += static_cast<std::int64_t>(squares.nbytes());
  return sum;
}

}  // namespace sweep::optim
