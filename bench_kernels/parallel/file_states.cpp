#include "bench_kernels/parallel/file_states.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/flat.h"
#include "bench_kernels/shape/model_states.h"

namespace sweep::parallel {

FileStates::FileStates(std::vector<at::Tensor> parts, const std::vector<at::Tensor>& masters,
                       OptimizerKind kind, optim::OptimizerOptions options)
    : parts_(std::move(parts)), moments_(shape::moments_of(kind)), kind_(kind), options_(options) {
  if (parts_.empty()) return;
  masters_ = masters[0].defined();
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < parts_.size(); ++b) {
    offsets_.push_back(bytes);
    bytes += masters_ ? (moments_ + 1) * static_cast<std::int64_t>(masters[b].nbytes())
                      : moments_ * static_cast<std::int64_t>(parts_[b].nbytes());
  }
  const memory::HostScope host;
  const bool meta = parts_[0].is_meta();
  step_tensor_ = at::zeros({}, at::TensorOptions(meta ? at::kMeta : at::kCPU).dtype(at::kFloat));
  if (meta) return;
  file_ = std::make_unique<ScratchFile>(bytes);  // reserved bytes read as zeros: the moments' start
  for (std::size_t b = 0; masters_ && b < parts_.size(); ++b) write(b, moments_, masters[b]);
}

void FileStates::write(std::size_t b, std::int64_t index, const at::Tensor& from) {
  const auto bytes = static_cast<std::int64_t>(from.nbytes());
  if (file_) file_->write(from.const_data_ptr(), bytes, offsets_[b] + index * bytes);
}

void FileStates::update(std::size_t b, const at::Tensor& grad) {
  const memory::HostScope host;
  const at::Tensor& part = parts_[b];
  const auto buffer = [&](std::int64_t index) {
    at::Tensor t = empty_outside(part.numel(), part.device(), masters_ ? at::kFloat : part.scalar_type());
    const auto bytes = static_cast<std::int64_t>(t.nbytes());
    if (file_) file_->read(t.mutable_data_ptr(), bytes, offsets_[b] + index * bytes);
    return t;
  };
  at::Tensor parameter;
  if (masters_) {
    parameter = buffer(moments_);
  } else {
    parameter = empty_outside(part.numel(), part.device(), part.scalar_type());
    parameter.copy_(part);
  }
  optim::Lists lists{{parameter}, {grad}, {}};
  for (std::int64_t i = 0; i < moments_; ++i) lists.moments.push_back({buffer(i)});
  optim::update(kind_, options_, count_, lists, step_tensor_);
  for (std::int64_t i = 0; i < moments_; ++i) write(b, i, lists.moments[static_cast<std::size_t>(i)][0]);
  if (masters_) write(b, moments_, parameter);
  at::Tensor(part).copy_(parameter);
}

}  // namespace sweep::parallel
