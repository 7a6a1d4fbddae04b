// HostStore: tensors that wait in host memory between forward and backward. It owns the copies under way;
// when a device tensor goes does not depend on how fast the copies are, so that peaks of memory are the same
// everywhere. On an accelerator copies run on a stream of their own, from and to pinned memory; on CPU the
// host blocks are tagged (counting_allocator.h).
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>
#include <vector>

namespace sweep::model {

class HostStore {
 public:
  explicit HostStore(at::Device);
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  // The saved tensors of one block, and where they are. By default they are on the device alone.
  struct Parcel {
    enum class Place { kDevice, kHost, kUnderWay };
    Place place = Place::kDevice;
    struct Sent {
      at::Tensor* tensor = nullptr;  // theirs who sent it
      std::size_t copy = 0;          // index in `host`; tensors that were one stay one
    };
    std::vector<Sent> sent;
    std::vector<at::Tensor> host;  // the copies, until they have arrived
    std::optional<c10::Event> arrived;
  };
  // Starts the way to the host; undefined tensors are left out. The given tensors become undefined; the
  // device copies go at the next send() or settle().
  Parcel send(const std::vector<at::Tensor*>&);
  // The last parcel sent has left the device.
  void settle();
  // Starts the way back, unless it is under way or over: the tensors are defined again, without their values.
  void fetch(Parcel&);
  // Their values are there (for what the device does next).
  void arrive(Parcel&);

 private:
  // Copies `from` to `to`, after all that the device has been told so far; the event is their end.
  std::optional<c10::Event> copy(const std::vector<at::Tensor>& from,
                                 const std::vector<at::Tensor>& to) const;
  void wait_for(std::optional<c10::Event>&) const;

  at::Device device_;
  std::optional<c10::Stream> stream_;  // nullopt: copies are complete when they return
  std::vector<at::Tensor> leaving_;
  std::optional<c10::Event> left_;
};

}  // namespace sweep::model
