#include "bench_kernels/model/host_store.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::model {

HostStore::HostStore(at::Device device) : device_(device) {
  if (device.is_cpu() || device.is_meta()) return;
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, false);
}

std::optional<c10::Event> HostStore::copy(const std::vector<at::Tensor>& from,
                                          const std::vector<at::Tensor>& to) const {
  if (!stream_) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
    return std::nullopt;
  }
  c10::Event told(device_.type());
  told.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  told.block(*stream_);
  const c10::StreamGuard guard(*stream_);
  for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i], /*non_blocking=*/true);
  std::optional<c10::Event> over(std::in_place, device_.type());
  over->record(*stream_);
  return over;
}

void HostStore::wait_for(std::optional<c10::Event>& event) const {
  if (event) event->block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  event.reset();
}

HostStore::Parcel HostStore::send(const std::vector<at::Tensor*>& tensors) {
  settle();
  Parcel parcel;
  for (at::Tensor* tensor : tensors) {
    if (!tensor->defined()) continue;
    const auto same = std::find_if(leaving_.begin(), leaving_.end(),
                                   [&](const at::Tensor& other) { return other.is_same(*tensor); });
    parcel.sent.push_back({tensor, static_cast<std::size_t>(same - leaving_.begin())});
    if (same == leaving_.end()) {
      parcel.host.push_back(memory::empty_on_host(tensor->sizes(), tensor->options()));
      leaving_.push_back(*tensor);
    }
    tensor->reset();
  }
  left_ = copy(leaving_, parcel.host);
  parcel.place = Parcel::Place::kHost;
  return parcel;
}

void HostStore::settle() {
  wait_for(left_);
  leaving_.clear();
}

void HostStore::fetch(Parcel& parcel) {
  if (parcel.place != Parcel::Place::kHost) return;
  std::vector<at::Tensor> back;
  for (const at::Tensor& host : parcel.host)
    back.push_back(at::empty(host.sizes(), host.options().device(device_).pinned_memory(false)));
  for (const Parcel::Sent& sent : parcel.sent) *sent.tensor = back[sent.copy];
  parcel.arrived = copy(parcel.host, back);
  parcel.place = Parcel::Place::kUnderWay;
}

void HostStore::arrive(Parcel& parcel) {
  if (parcel.place != Parcel::Place::kUnderWay) return;
  wait_for(parcel.arrived);
  parcel.host.clear();
  parcel.place = Parcel::Place::kDevice;
}

}  // namespace sweep::model
