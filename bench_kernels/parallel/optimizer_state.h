// OptimizerState: the moments, and the values the optimizer updates where they are not the weights themselves
// (an fp32 master, host memory, a file); and the update of this rank's part. It owns them; gradients and
// weights belong to others.
#pragma once
#include <c10/core/Event.h>

#include <optional>
#include <vector>

#include "bench_kernels/optim/adafactor.h"
#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/parallel/file_states.h"
#include "bench_kernels/parallel/gradients.h"
#include "bench_kernels/parallel/paged_states.h"

namespace sweep::parallel {

// The matrices and vectors of a bucket, without padding.
std::vector<optim::Extent> extents_of(const model::Parameters&, std::size_t bucket);

class OptimizerState {
 public:
  OptimizerState(const StatePlan&, Values&, const model::Parameters&, OptimizerKind, optim::OptimizerOptions);

  // Updates every part with coefficient times its gradient and sends it on. True: the gradients have been
  // multiplied in place; false: they are as they were.
  bool update(const Gradients&, double coefficient);
  std::int64_t bytes() const;  // bytes on the device, without step counts

  // A state of a trained bucket's part (Values::part), number by number; none of what is in the file.
  struct Kept {
    const char* state;  // "master", "mean", "square"
    at::Tensor values;
  };
  std::vector<Kept> kept(std::size_t bucket) const;

 private:
  bool needs_copies(const Gradients&) const;
  bool updates_at_once() const;
  // A gradient where the update runs, or on its way there.
  struct Coming {
    at::Tensor copy;
    std::optional<c10::Event> arrived;
  };
  Coming start_gradient(std::size_t bucket, const Gradients&) const;
  void update_copy(std::size_t i, const Gradients&, double coefficient);
  void update_one(std::size_t i, const at::Tensor& grad);
  void update_in_place(const Gradients&, double coefficient);
  void update_at_once(const Gradients&, double coefficient);

  const StatePlan& plan_;
  Values& values_;
  std::vector<std::size_t> buckets_;  // buckets that are trained
  std::vector<at::Tensor>
      updated_;  // tensors that the optimizer updates, one for each of these; empty: they are in the file
  std::optional<optim::Optimizer> optimizer_;
  std::optional<FileStates> file_;
  std::optional<PagedStates> paged_;
  std::optional<optim::Adafactor> adafactor_;
  Coming next_;  // outside the device: the gradient of the bucket after, while one is updated
};

}  // namespace sweep::parallel
