// ModelState: values, gradients and optimizer state of one stage's parameters: where they lie, when they are
// there, how gradients become the average over the data-parallel group, and the update. It owns the gradient
// buffers and the optimizer; it knows nothing of what is computed with the values.
//
// One step: begin_step(); per micro-batch forward, then begin_backward(last) and backward; finish_gradients();
// update(). Buckets leave for their all-reduce as soon as the last backward has completed them, in the same
// order on every rank.
#pragma once
#include <optional>
#include <vector>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/optim/adamw.h"
#include "bench_kernels/parallel/mesh.h"
#include "schema/trial.h"

namespace sweep::parallel {

class ModelState final : public model::Keeper {
 public:
  // Lays the parameters out and fills them. Parameters and mesh must outlive the state.
  ModelState(model::Parameters&, const Mesh&, const Trial&, at::TensorOptions);
  ~ModelState() override;
  ModelState(const ModelState&) = delete;
  ModelState& operator=(const ModelState&) = delete;

  void need(std::size_t group, model::Pass) override;
  void done(std::size_t group, model::Pass) override;

  void begin_step();
  // last: the step's last backward of this stage; its gradients are complete.
  void begin_backward(bool last);
  // Waits for what backward did not hide; gradients are then the average over all tokens of the step.
  void finish_gradients();
  std::int64_t exposed_wait_ns() const { return exposed_wait_ns_; }
  void update();

  // The gradient of a tensor as this rank's share of the model has it, whole even where ZeRO shards it: a
  // collective that every rank of the data-parallel group calls after finish_gradients().
  at::Tensor gradient(const model::Parameters::Named&);
  at::Tensor value(const model::Parameters::Named&);

 private:
  struct Sync {
    std::size_t missing = 0;  // stacks of the bucket without their gradient in the last backward
    comm::Pending pending;
  };
  void gradient_ready(model::Parameters::Id);
  void launch(std::size_t bucket);

  model::Parameters& parameters_;
  const Mesh& mesh_;
  std::vector<Sync> syncs_;  // per bucket
  std::vector<bool> seen_;   // per stack, in the last backward
  std::size_t next_to_launch_ = 0;
  bool last_backward_ = false;
  std::int64_t exposed_wait_ns_ = 0;
  std::optional<optim::AdamW> optimizer_;
};

}  // namespace sweep::parallel
