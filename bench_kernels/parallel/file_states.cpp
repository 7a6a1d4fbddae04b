#include "bench_kernels/parallel/file_states.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/flat.h"

namespace sweep::parallel {

FileStates::FileStates(std::vector<at::Tensor> parts, const std::vector<at::Tensor>& masters,
                       OptimizerKind kind, optim::OptimizerOptions options)
    : parts_(std::move(parts)), kind_(kind), options_(options) {
  if (parts_.empty()) return;
  masters_ = masters[0].defined();
  std::int64_t bytes = 0;
  std::vector<std::int64_t> masters_at;
  for (std::size_t b = 0; b < parts_.size(); ++b) {
    offsets_.push_back(bytes);
    for (const auto& state : layout(b)) bytes += state.bytes();
    masters_at.push_back(bytes);
    if (masters_) bytes += static_cast<std::int64_t>(masters[b].nbytes());
  }
  const memory::HostScope host;
  const bool meta = parts_[0].is_meta();
  aid_ = optim::make_aid(kind, at::TensorOptions(meta ? at::kMeta : at::kCPU));
  if (meta) return;
  file_ = std::make_unique<ScratchFile>(bytes);  // reserved bytes read as zeros: the moments' start
  for (std::size_t b = 0; masters_ && b < parts_.size(); ++b) write(masters[b], masters_at[b]);
}

at::ScalarType FileStates::updated_type(std::size_t b) const {
  return masters_ ? at::kFloat : parts_[b].scalar_type();
}

std::vector<optim::StateLayout> FileStates::layout(std::size_t b) const {
  return optim::state_layout(kind_, parts_[b].numel(), updated_type(b));
}

at::Tensor FileStates::read(std::size_t b, const optim::StateLayout& state, std::int64_t& offset) const {
  if (state.elements == 0) return {};
  at::Tensor t = empty_outside(state.elements, parts_[b].device(), state.type);
  if (file_) file_->read(t.mutable_data_ptr(), state.bytes(), offset);
  offset += state.bytes();
  return t;
}

void FileStates::write(const at::Tensor& from, std::int64_t& offset) {
  if (!from.defined()) return;
  const auto bytes = static_cast<std::int64_t>(from.nbytes());
  if (file_) file_->write(from.const_data_ptr(), bytes, offset);
  offset += bytes;
}

void FileStates::update(std::size_t b, const at::Tensor& grad) {
  const memory::HostScope host;
  const at::Tensor& part = parts_[b];
  std::int64_t from = offsets_[b], to = offsets_[b];
  optim::Lists lists{{}, {grad}, {}};
  for (const auto& state : layout(b)) lists.moments.push_back({read(b, state, from)});
  at::Tensor parameter;
  if (masters_) {
    parameter = read(b, {at::kFloat, part.numel()}, from);
  } else {
    parameter = empty_outside(part.numel(), part.device(), part.scalar_type());
    parameter.copy_(part);
  }
  lists.parameters = {parameter};
  optim::update(kind_, options_, count_, lists, aid_);
  for (const auto& moment : lists.moments) write(moment[0], to);
  if (masters_) write(parameter, to);
  at::Tensor(part).copy_(parameter);
}

}  // namespace sweep::parallel
