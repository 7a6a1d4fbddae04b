// ModelState: values, gradients and optimizer state of one stage's parameters under a trial's ZeRO stage,
// precision and offload: where they lie, when they are there, how gradients become the average over the
// data-parallel group, and the update. It composes Values, Gradients and OptimizerState; it knows nothing of
// what is computed with the values.
//
// One step: begin_step(); per micro-batch forward, then begin_backward(last) and backward;
// finish_gradients(); update(). Every rank of a group makes the same calls in the same order.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/parallel/gradients.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/parallel/optimizer_state.h"
#include "bench_kernels/parallel/pieces.h"
#include "bench_kernels/parallel/state_plan.h"
#include "bench_kernels/parallel/values.h"
#include "schema/trial.h"

namespace sweep::parallel {

class ModelState final : public model::Keeper {
 public:
  // Lays the parameters out and fills them. Parameters and mesh must outlive the state.
  ModelState(model::Parameters&, const Mesh&, const Trial&, at::TensorOptions, optim::OptimizerOptions = {});
  ~ModelState() override;
  ModelState(const ModelState&) = delete;
  ModelState& operator=(const ModelState&) = delete;

  void need(std::size_t group, model::Pass) override;
  void done(std::size_t group, model::Pass) override;

  // Called before (true) and after each wait for a gather or a reduction.
  void watch_waits(const std::function<void(bool begins)>& watch) {
    values_.watch_waits(watch);
    gradients_.watch_waits(watch);
  }
  void begin_step() {
    gradients_.begin_step();
    outstanding_ = 1;
  }
  // A step whose forward and backward are launched as graphs: gradients stay where these write them.
  void begin_captured_step() { outstanding_ = 1; }
  // last: the step's last backward of this stage; its gradients are complete.
  void begin_backward(bool last) { gradients_.begin_backward(last); }
  // After a backward that is not the last one: waits for reductions under way.
  void settle_gradients() { gradients_.settle_flight(); }
  // Waits for what backward did not hide; gradients are then the average over all tokens of the step.
  void finish_gradients() { gradients_.finish(); }
  // total[0] grows by the squares of this rank's gradients, each divided by the number of ranks that hold it.
  void add_squares(const at::Tensor& total) const;
  // Updates the weights with coefficient times the gradients.
  void update(double coefficient = 1);

  // The tensors of this rank's share of the model, whole even where ZeRO shards them, in the order of use in forward. A
  // collective that every rank of the data-parallel group calls after finish_gradients(): each bucket is gathered once.
  // Gradients are times the coefficient after update(); undefined for what is frozen, and before the first step.
  struct Whole {
    model::Parameters::Named named;
    at::Tensor value, gradient;
  };
  std::vector<Whole> whole_tensors() const;

  // The pieces of it that files of weights and checkpoints hold.
  const StatePieces& pieces() const { return pieces_; }

  // Weights and optimizer last on this rank's device from step to step, gradients from a backward until the next
  // step begins; with padding, without step counts.
  struct Bytes {
    std::int64_t weights = 0, gradients = 0, optimizer = 0;
  };
  Bytes bytes() const;
  // The gradients that bytes() counts.
  std::vector<at::Tensor> gradients() const { return gradients_.kept(); }
  // Elements of all buckets but quantized ones, and how many of them are padding.
  std::int64_t elements() const;
  std::int64_t padding() const;
  // The elements of the trained, or of the frozen buckets: all; in buckets of experts; in buckets that more
  // than one group reads (a tied table). Of quantized buckets apart: the bytes, of experts and of the rest.
  struct Elements {
    std::int64_t all = 0, experts = 0, shared = 0, quantized = 0, quantized_experts = 0;
  };
  Elements count(bool frozen) const;
  // The sizes of what this rank's optimizer updates, one part of each trained bucket. Unit: elements.
  std::vector<std::int64_t> updated() const;
  // Rows and columns of all trained matrices, and the elements of vectors: what Adafactor keeps numbers of.
  std::int64_t factored() const;

 private:
  struct Run {  // consecutive elements of a part with as many copies over the world
    std::int64_t begin = 0, size = 0;
    double copies = 1;
  };
  std::vector<Run> runs_of(std::size_t bucket) const;
  double copies_of(const model::Stack&, const model::Part&) const;

  model::Parameters& parameters_;
  const Mesh& mesh_;
  StatePlan plan_;
  comm::Channel alone_{"alone"};
  Values values_;
  Gradients gradients_;
  OptimizerState optimizer_;
  StatePieces pieces_{parameters_, mesh_, plan_, values_, optimizer_};
  std::vector<std::vector<Run>> runs_;  // runs of each bucket
  double outstanding_ = 1;              // coefficient that the gradients have not been multiplied by
};

}  // namespace sweep::parallel
