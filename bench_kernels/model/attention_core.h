// Attention proper: between rotated q, k, v rows of this rank's tokens and the rows its heads give. With a
// context group the positions of a sequence lie on several ranks (positions.h): keys and values travel round
// the ring, or heads are exchanged so that each rank has all positions of some. What is saved is what the
// backward needs; nothing else is kept.
#pragma once
#include <memory>

#include "bench_kernels/model/unit.h"

namespace sweep::model {

class AttentionCore {
 public:
  struct Kept {
    at::Tensor qkv;  // [tokens, (heads + 2 kv_heads) * head_dim]; of the exchanged heads where they are
    at::Tensor out;  // [this rank's tokens, heads * head_dim]; undefined: the state's
    kernels::AttentionState state;
    const at::Tensor& result() const { return out.defined() ? out : state.out; }
  };
  virtual ~AttentionCore() = default;
  virtual Kept forward(at::Tensor qkv) const = 0;
  // Computes again what a Kept that has only qkv lacks.
  virtual void recall(Kept&) const = 0;
  // The gradient of qkv as it was before q and k were turned to their positions. That of the sinks is put where it
  // belongs.
  virtual at::Tensor backward(at::Tensor dout, Kept) const = 0;
  // This rank's heads' sinks; kNone: the family has none. Set before the first forward.
  Parameters::Id sinks = Parameters::kNone;
};

// The sinks of so many heads, from `first` on of this rank's; undefined: there are none.
at::Tensor sinks_of(const StageContext&, Parameters::Id, std::int64_t first, std::int64_t heads);
// Puts the gradient of the same heads' sinks where it belongs.
void backward_sinks(const StageContext&, Parameters::Id, std::int64_t first, const at::Tensor& dout,
                    const kernels::AttentionShape&, const kernels::AttentionState&);

// Turns q and k of a layer's rows to their positions, or back; nothing where the model has no rotary ones.
void turn(const StageContext&, std::int64_t layer, const at::Tensor& rows, bool back);

// The form that the layout and the axes ask for; of an encoder's layer, whose rows see all rows of their sequence, the
// plain one. Shared outlives the core.
std::unique_ptr<AttentionCore> make_attention_core(const StageContext&, std::int64_t layer);

// Keys and values (and their gradients) pass from rank to rank; partial results are merged by their
// log-sum-exp (Liu et al. 2023, arXiv 2310.01889). Flash attention only, without a window.
std::unique_ptr<AttentionCore> make_ring_attention(const StageContext&, std::int64_t layer);
// All-to-all to all positions of a share of the heads, and back (Jacobs et al. 2023, arXiv 2309.14509).
// REQUIRES: heads and key-value heads of a tensor-parallel rank are multiples of the context group's size.
std::unique_ptr<AttentionCore> make_head_exchange(const StageContext&, std::int64_t layer);

}  // namespace sweep::model
