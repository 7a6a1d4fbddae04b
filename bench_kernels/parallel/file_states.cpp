#include "bench_kernels/parallel/file_states.h"

#include <ATen/ATen.h>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/flat.h"

namespace sweep::parallel {

FileStates::FileStates(std::vector<at::Tensor> parts, const std::vector<at::Tensor>& masters,
                       OptimizerKind kind, optim::OptimizerOptions options)
    : parts_(std::move(parts)), kind_(kind), options_(options), held_(parts_.size()) {
  if (parts_.empty()) return;
  masters_ = masters[0].defined();
  std::int64_t bytes = 0;
  std::vector<std::int64_t> masters_at;
  for (std::size_t b = 0; b < parts_.size(); ++b) {
    offsets_.push_back(bytes);
    for (const auto& state : layout(b)) bytes += state.bytes();
    masters_at.push_back(bytes - (masters_ ? layout(b).back().bytes() : 0));
  }
  const memory::HostScope host;
  const bool meta = parts_[0].is_meta();
  aid_ = optim::make_aid(kind, at::empty({0}, at::TensorOptions(meta ? at::kMeta : at::kCPU)));
  if (meta) return;
  file_ = std::make_unique<ScratchFile>(bytes);  // reserved bytes read as zeros: the moments' start
  for (std::size_t b = 0; masters_ && b < parts_.size(); ++b)
    file_->write(masters[b].const_data_ptr(), static_cast<std::int64_t>(masters[b].nbytes()), masters_at[b]);
  queue_ = std::make_unique<DiskQueue>(*file_);
}

at::ScalarType FileStates::updated_type(std::size_t b) const {
  return masters_ ? at::kFloat : parts_[b].scalar_type();
}

std::vector<optim::StateLayout> FileStates::layout(std::size_t b) const {
  auto all = optim::state_layout(kind_, parts_[b].numel(), updated_type(b));
  if (masters_) all.push_back({at::kFloat, parts_[b].numel()});
  return all;
}

void FileStates::begin_step() {
  ++count_;
  for (std::size_t b = 0; b < held_.size(); ++b) free_written(b);
}

void FileStates::free_written(std::size_t b) {
  if (queue_) queue_->wait(held_[b].job);
  held_[b] = {};
}

void FileStates::fetch(std::size_t b) {
  Held& held = held_[b];
  std::int64_t offset = offsets_[b];
  for (const optim::StateLayout& state : layout(b)) {
    at::Tensor& t = held.tensors.emplace_back();
    if (state.elements == 0) continue;
    t = empty_outside(state.elements, parts_[b].device(), state.type);
    if (queue_) held.job = queue_->read(t.mutable_data_ptr(), state.bytes(), offset);
    offset += state.bytes();
  }
}

void FileStates::send_back(std::size_t b) {
  Held& held = held_[b];
  std::int64_t offset = offsets_[b];
  for (const at::Tensor& t : held.tensors) {
    if (!t.defined()) continue;
    const auto bytes = static_cast<std::int64_t>(t.nbytes());
    if (queue_) held.job = queue_->write(t.const_data_ptr(), bytes, offset);
    offset += bytes;
  }
}

void FileStates::update(std::size_t b, const at::Tensor& grad) {
  const memory::HostScope host;
  const at::Tensor& part = parts_[b];
  if (b == 0) fetch(0);
  if (queue_) queue_->wait(held_[b].job);
  if (b > 1) free_written(b - 2);  // it went before this bucket came
  if (b + 1 < parts_.size()) fetch(b + 1);
  std::vector<at::Tensor> moments = held_[b].tensors;
  at::Tensor parameter;
  if (masters_) {
    parameter = moments.back();
    moments.pop_back();
  } else {
    parameter = empty_outside(part.numel(), part.device(), part.scalar_type());
    parameter.copy_(part);
  }
  optim::Lists lists{{parameter}, {grad}, {}};
  for (const at::Tensor& moment : moments) lists.moments.push_back({moment});
  optim::update(kind_, options_, count_, lists, aid_);
  send_back(b);
  at::Tensor(part).copy_(parameter, /*non_blocking=*/true);
}

}  // namespace sweep::parallel
