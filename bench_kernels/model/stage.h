// Stage: the consecutive part of a model that one rank computes: blocks of units, each block a group of the
// parameters. Whole model on one rank: the default chunk. It owns units and parameters; it knows nothing of
// schedules, optimizers, gradient exchange or where tokens come from.
#pragma once
#include <memory>
#include <vector>

#include "bench_kernels/model/unit.h"

namespace sweep::model {

enum class Pass { kForward, kBackward };

// Told around each use of a group's parameters; between need() and done() their values must be there, and
// in backward also room for the gradients.
class Keeper {
 public:
  virtual ~Keeper() = default;
  virtual void need(std::size_t group, Pass) = 0;
  virtual void done(std::size_t group, Pass) = 0;
};

class Stage {
 public:
  // Declares the parameters; parameters().layout() must follow before the first forward.
  Stage(const ModelSpec&, const Options&, const Layout&, const Chunk&);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // What forward saved of one micro-batch, per block and unit.
  struct Tape {
    std::vector<std::vector<SavedPtr>> blocks;
  };
  // in: undefined when this stage embeds. The result is undefined when it has the head: the loss went to
  // micro.total.
  at::Tensor forward(const MicroStep&, at::Tensor in, Tape&);
  at::Tensor backward(const MicroStep&, at::Tensor grad, Tape);

  void set_keeper(Keeper* keeper) { keeper_ = keeper; }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  const Shared& shared() const { return shared_; }
  RoutingLoad& routing_load() { return load_; }

 private:
  struct Block {
    std::size_t group = 0;
    std::vector<UnitPtr> units;
  };
  template <class... Make>
  void add_block(Make... make);
  void make_tables();

  Parameters parameters_;
  RoutingLoad load_;
  Shared shared_;
  std::vector<Block> blocks_;
  Keeper* keeper_ = nullptr;
};

}  // namespace sweep::model
