// PagedStates: the moments of AdamW in host memory, page by page on the device for their update (paged_adamw, as QLoRA
// has it: Dettmers et al. 2023, arXiv 2305.14314). It owns the moments and a window of two pages: while one is
// updated, the one before goes back and the one after comes, on a stream of their own and from pinned memory. On CPU
// and meta tensors copies are complete when they return, and the moments are tagged host memory.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "bench_kernels/optim/optimizer.h"

namespace sweep::parallel {

class PagedStates {
 public:
  // updated: the tensors that are updated, all of one type on one device. A page has at most `page` numbers.
  PagedStates(std::vector<at::Tensor> updated, optim::OptimizerOptions, std::int64_t page);
  PagedStates(const PagedStates&) = delete;
  PagedStates& operator=(const PagedStates&) = delete;

  // begin_step(), then each tensor once, in their order; one gradient of its shape and type. The window is there
  // from the first to the last of them.
  void begin_step() { ++count_; }
  void update(std::size_t tensor, const at::Tensor& grad);
  // A moment of a tensor, in host memory: complete once the device has done the update.
  static constexpr std::size_t kMoments = 2;
  const at::Tensor& moment(std::size_t tensor, std::size_t number) const { return host_[number][tensor]; }

 private:
  static constexpr std::size_t kSlots = 2;
  struct Page {
    std::size_t tensor = 0;
    std::int64_t begin = 0, size = 0;
  };
  struct Slot {
    at::Tensor moments[kMoments];
    std::optional<c10::Event> arrived, updated;
  };
  at::Tensor on_host(const Page&, std::size_t moment) const;
  at::Tensor on_device(std::size_t page, std::size_t moment) const;
  void open_window();
  void close_window();
  void fetch(std::size_t page);
  void send_back(std::size_t page);
  void update_page(std::size_t page, const at::Tensor& grad);
  c10::Stream computing() const;

  std::vector<at::Tensor> updated_;
  optim::OptimizerOptions options_;
  std::vector<at::Tensor> host_[kMoments];  // one for each tensor
  std::vector<Page> pages_;
  std::size_t next_ = 0;  // page that is to be updated
  Slot slots_[kSlots];
  std::optional<c10::Stream> copying_;  // nullopt: copies are complete when they return
  at::Tensor aid_;
  std::int64_t count_ = 0;
};

}  // namespace sweep::parallel
