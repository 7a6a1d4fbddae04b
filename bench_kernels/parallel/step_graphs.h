// StepGraphs: forward and backward of the micro-batches of a step as CUDA graphs, each launched whole. The first step runs
// as it is, and makes what lasts (workspaces, communicators' connections); the second is captured; later ones are
// launched. It owns the graphs and the buffers that they read tokens from, and counts what they send.
//
// The first micro-batch, those between and the last one have a graph each for forward and backward: the first
// stores gradients, the last one's are averaged.
//
// REQUIRES: a micro-batch's backward comes before the next forward; work waits for its collectives itself.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "bench_kernels/comm/cuda_plugin.h"
#include "bench_kernels/model/unit.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/shape/graphs.h"
#include "bench_kernels/shape/schedule.h"

namespace sweep::parallel {

class StepGraphs {
 public:
  // The mesh must outlive the graphs.
  explicit StepGraphs(const Mesh& mesh) : mesh_(mesh) {}

  void begin_step() { ++step_; }
  // True when this step only launches graphs: nothing that the host keeps changes.
  bool launches_only() const { return step_ > shape::kStepsBeforeGraphs; }
  // Copies the micro-batch into the buffers that the graphs read.
  void take(const model::MicroBatch&);
  // The micro-batch with these buffers.
  model::MicroBatch taken(model::MicroBatch) const;

  struct Key {
    shape::Act act = shape::Act::kForward;
    bool first = false, last = false;  // whether it is the step's first or last micro-batch
    bool operator<(const Key& o) const {
      return std::tie(act, first, last) < std::tie(o.act, o.first, o.last);
    }
  };
  void run(const Key&, const std::function<void()>& work);
  // Drops the graphs: the next step runs as the first one did. REQUIRES: gradients in their memory were dropped.
  void forget();

 private:
  using Sent = std::array<comm::Traffic, shape::kDimensions>;
  struct Graph {
    std::unique_ptr<comm::CudaGraph> captured;
    Sent sent;
  };
  Sent sent() const;

  const Mesh& mesh_;
  int step_ = 0;
  comm::CudaGraphPool pool_{};
  std::map<Key, Graph> graphs_;
  at::Tensor tokens_, labels_;
};

}  // namespace sweep::parallel
