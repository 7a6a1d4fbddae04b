// StatePieces: a stage's state as files hold it: which runs of numbers of which tensor's state a rank saves, and gives to
// or takes from a file of weights. It owns nothing, and knows no file.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/model/parameters.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/parallel/optimizer_state.h"
#include "bench_kernels/parallel/state_plan.h"
#include "bench_kernels/parallel/values.h"

namespace sweep::parallel {

// A run of numbers of one tensor's state, as a checkpoint holds it.
struct Piece {
  std::string tensor;
  std::string state;       // "weight", "master", "mean", "square"
  std::int64_t begin = 0;  // its first number, in the rows and columns of the tensor that this rank has
  std::int64_t whole = 0;  // how many those are
  at::Tensor values;       // a view, where the state is
  // Set for a tensor that is kept in 4 bits: what quantizes its weights. `values` are then bytes of the codes, which
  // begin and whole count. Null: `values` are the numbers themselves.
  struct Quantized {
    const model::Parameters* parameters = nullptr;
    model::Parameters::Id stack = 0;
    std::size_t part = 0;
  } quantized = {};
};
using TakePiece = std::function<void(const Piece&)>;

class StatePieces {
 public:
  // All outlive it.
  StatePieces(const model::Parameters& parameters, const Mesh& mesh, const StatePlan& plan,
              const Values& values, const OptimizerState& optimizer)
      : parameters_(parameters), mesh_(mesh), plan_(plan), values_(values), optimizer_(optimizer) {}

  // The pieces that this rank saves: each number of each trained tensor of the model is in one piece of one rank.
  void saved(const TakePiece&) const;
  // All pieces of the tensors that this rank has, on the first rank of the data-parallel group, one gathered buffer
  // after the other; a collective of its shard group. On other ranks there are none.
  void gathered(const TakePiece&) const;

  // A file brings the weights of everything, or where adapters are trained those of the base.
  // Gives the pieces that this rank keeps, one after the other; the views may be written.
  // REQUIRES: tp, pp and ep are 1.
  void kept_weights(const TakePiece&) const;
  // All weights, from the first rank of the data-parallel group to all: it fills each run of a buffer, which the others
  // get. A collective of that group. REQUIRES: tp, pp and ep are 1.
  void spread_weights(const TakePiece& fill) const;
  // All weights to the first rank of the data-parallel group, as gathered() does with the pieces.
  void gathered_weights(const TakePiece&) const;

 private:
  // A state of a bucket: its numbers from `begin` on.
  struct Lasting {
    std::string state;
    at::Tensor values;
    std::int64_t begin = 0;
  };
  std::vector<Lasting> lasting(std::size_t bucket) const;
  std::vector<std::size_t> loaded() const;
  Lasting weights_of(std::size_t bucket) const;
  bool saves(const model::Stack&, const model::Part&) const;
  void cut(std::size_t bucket, const Lasting&, std::pair<std::int64_t, std::int64_t> range,
           const TakePiece&) const;
  void gather(std::size_t bucket, const Lasting&, const TakePiece&) const;

  const model::Parameters& parameters_;
  const Mesh& mesh_;
  const StatePlan& plan_;
  const Values& values_;
  const OptimizerState& optimizer_;
};

}  // namespace sweep::parallel
