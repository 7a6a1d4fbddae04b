#include "bench_kernels/parallel/paged_states.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/parallel/flat.h"

namespace sweep::parallel {

PagedStates::PagedStates(std::vector<at::Tensor> updated, optim::OptimizerOptions options, std::int64_t page)
    : updated_(std::move(updated)), options_(options) {
  if (updated_.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Device device = updated_[0].device();
  for (std::size_t i = 0; i < updated_.size(); ++i) {
    const std::int64_t size = updated_[i].numel();
    for (auto& moment : host_)
      moment.push_back(empty_outside(size, device, updated_[i].scalar_type()).zero_());
    for (std::int64_t begin = 0; begin < size; begin += page)
      pages_.push_back({i, begin, std::min(page, size - begin)});
  }
  aid_ = optim::make_aid(OptimizerKind::kFused, updated_[0]);
  if (device.is_cpu() || device.is_meta()) return;
  copying_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, false);
}

c10::Stream PagedStates::computing() const {
  const at::Device device = updated_[0].device();
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

at::Tensor PagedStates::on_host(const Page& page, std::size_t moment) const {
  return host_[moment][page.tensor].narrow(0, page.begin, page.size);
}

at::Tensor PagedStates::on_device(std::size_t page, std::size_t moment) const {
  return slots_[page % kSlots].moments[moment].narrow(0, 0, pages_[page].size);
}

void PagedStates::open_window() {
  std::int64_t largest = 0;
  for (const Page& page : pages_) largest = std::max(largest, page.size);
  for (std::size_t s = 0; s < std::min(kSlots, pages_.size()); ++s)
    for (at::Tensor& moment : slots_[s].moments) moment = at::empty({largest}, updated_[0].options());
  if (!copying_) return;
  c10::Event told(copying_->device_type());  // told after what held this memory before
  told.record(computing());
  told.block(*copying_);
}

// The device goes on when the last pages have left; only then is their memory anybody else's.
void PagedStates::close_window() {
  if (copying_) {
    c10::Event left(copying_->device_type());
    left.record(*copying_);
    left.block(computing());
  }
  for (Slot& slot : slots_) slot = {};
  next_ = 0;
}

void PagedStates::fetch(std::size_t page) {
  std::optional<c10::StreamGuard> guard;
  if (copying_) guard.emplace(*copying_);
  for (std::size_t m = 0; m < kMoments; ++m)
    on_device(page, m).copy_(on_host(pages_[page], m), /*non_blocking=*/true);
  if (copying_) slots_[page % kSlots].arrived.emplace(copying_->device_type()).record(*copying_);
}

void PagedStates::send_back(std::size_t page) {
  std::optional<c10::StreamGuard> guard;
  if (copying_) {
    slots_[page % kSlots].updated->block(*copying_);
    guard.emplace(*copying_);
  }
  for (std::size_t m = 0; m < kMoments; ++m)
    on_host(pages_[page], m).copy_(on_device(page, m), /*non_blocking=*/true);
}

void PagedStates::update_page(std::size_t number, const at::Tensor& grad) {
  const Page& page = pages_[number];
  Slot& slot = slots_[number % kSlots];
  if (copying_) slot.arrived->block(computing());
  const optim::Lists lists{{updated_[page.tensor].narrow(0, page.begin, page.size)},
                           {grad.narrow(0, page.begin, page.size)},
                           {{on_device(number, 0)}, {on_device(number, 1)}}};
  optim::update(OptimizerKind::kFused, options_, count_, lists, aid_);
  if (copying_) slot.updated.emplace(copying_->device_type()).record(computing());
}

void PagedStates::update(std::size_t tensor, const at::Tensor& grad) {
  if (next_ == 0) {
    open_window();
    fetch(0);
  }
  // The page after takes the slot of the page before, which goes back first.
  for (; next_ < pages_.size() && pages_[next_].tensor == tensor; ++next_) {
    if (next_ > 0) send_back(next_ - 1);
    if (next_ + 1 < pages_.size()) fetch(next_ + 1);
    update_page(next_, grad);
  }
  if (next_ < pages_.size()) return;
  send_back(pages_.size() - 1);
  close_window();
}

}  // namespace sweep::parallel
