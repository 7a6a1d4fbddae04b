// Stage: the consecutive part of a model that one rank computes: blocks of units, each block a group of the
// parameters. Whole model on one rank: the default chunk. It owns units and parameters, and decides what of a
// forward is kept for its backward, and where (Options: recompute, activation_offload); it knows nothing of
// schedules, optimizers, gradient exchange or where tokens come from.
#pragma once
#include <vector>

#include "bench_kernels/model/host_store.h"
#include "bench_kernels/model/routing.h"
#include "bench_kernels/model/unit.h"

namespace sweep::model {

// kRecompute: a forward again, in backward. Only values are read, and the group's own backward comes soon.
// A backward in two parts: kBackwardInput reads values and writes no gradient, kBackwardWeights the reverse.
// kEvaluate: a forward that no backward follows.
enum class Pass { kForward, kRecompute, kBackward, kBackwardInput, kBackwardWeights, kEvaluate };

// Told around each use of a group's parameters; between need() and done() their values must be there, and
// in kBackward also room for the gradients; in kBackwardWeights only that room.
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

  // The tensors that forward saved for one micro-batch, per block and unit.
  struct Tape {
    struct Block {
      at::Tensor in;  // kept where a recomputation starts
      std::vector<SavedPtr> units;
      HostStore::Parcel parcel;  // the tensors that wait in host memory
    };
    std::vector<Block> blocks;
    Encoded encoded;  // the encoder's result; empty: the model has no encoder
  };
  // in: undefined when this stage embeds. The result is undefined when it has the head, whose loss is made in
  // backward (head.cpp).
  at::Tensor forward(const MicroBatch&, at::Tensor in, Tape&);
  at::Tensor backward(const MicroBatch&, at::Tensor grad, Tape);
  // Forward that keeps nothing; with the head micro.total grows by the sum of the tokens' losses.
  at::Tensor evaluate(const MicroBatch&, at::Tensor in);

  // The same in two parts: of each block, what the second part is to do.
  using Later = std::vector<LaterWork>;
  at::Tensor backward_input(const MicroBatch&, at::Tensor grad, Tape, Later&);
  void backward_weights(Later);

  void set_keeper(Keeper* keeper) { keeper_ = keeper; }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  const StageContext& shared() const { return shared_; }
  RoutingLoad& routing_load() { return load_; }

 private:
  struct Block {
    std::size_t group = 0;
    std::int64_t layer = -1;  // counted from the chunk's first, or the encoder's; -1: no layer
    std::vector<UnitPtr> units;
  };
  template <class... Make>
  void add_block(std::int64_t layer, Make... make);
  void add_encoder();
  void add_layers(const Chunk&);
  void make_tables();
  void take_documents(const MicroBatch&);
  void need(std::size_t b, Pass pass) const {
    if (keeper_) keeper_->need(blocks_[b].group, pass);
  }
  void done(std::size_t b, Pass pass) const {
    if (keeper_) keeper_->done(blocks_[b].group, pass);
  }
  bool recomputes(std::size_t b) const {
    return blocks_[b].layer >= 0 && shared_.options.recompute == Recompute::kFull;
  }
  // The block whose input is kept for the recomputation of block b.
  std::size_t start_of(std::size_t b) const {
    return b - static_cast<std::size_t>(blocks_[b].layer % shared_.options.recompute_every);
  }
  at::Tensor run(const MicroBatch&, std::size_t b, at::Tensor in, Tape::Block&) const;
  void keep(std::size_t b, Tape&);
  void bring_back(std::size_t b, Tape&);
  void recompute(const MicroBatch&, std::size_t b, Tape&);
  at::Tensor backward(const MicroBatch&, at::Tensor grad, Tape, Later*);

  Parameters parameters_;
  RoutingLoad load_;
  ForcedRoutes routes_;
  Encoded encoded_;
  StageContext shared_;
  kernels::Angles angles_, local_angles_;  // tables by position; packed documents take rows of them
  std::vector<Block> blocks_;
  Keeper* keeper_ = nullptr;
  HostStore host_;
};

}  // namespace sweep::model
