#include "bench_kernels/model/stage.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include "bench_kernels/model/positions.h"

namespace sweep::model {
namespace {

// Work below the autograd dispatch: no graph is recorded.
struct Below {
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView guard;
};

}  // namespace

template <class... Make>
void Stage::add_block(Make... make) {
  parameters_.begin_group();
  Block block;
  block.group = parameters_.groups() - 1;
  (block.units.push_back(make()), ...);
  blocks_.push_back(std::move(block));
}

Stage::Stage(const ModelSpec& spec, const Options& options, const Layout& layout, const Chunk& chunk)
    : parameters_(options.seed), shared_{spec, options, layout, &parameters_, {}, {}, {}, &load_} {
  const Below below;
  if (chunk.embedding) add_block([&] { return make_embedding(shared_); });
  for (std::int64_t layer = chunk.first_layer; layer < chunk.first_layer + chunk.layers; ++layer) {
    add_block([&] { return make_attention(shared_, layer); },
              [&] { return spec.experts > 0 ? make_moe(shared_, layer) : make_mlp(shared_, layer); });
  }
  const bool tied_here = spec.tie_embeddings && chunk.embedding;
  if (chunk.head) add_block([&] { return make_head(shared_, tied_here ? kTable : Parameters::kNone); });
  make_tables();
}

void Stage::make_tables() {
  const Options& o = shared_.options;
  const kernels::AttentionShape shape{1,
                                      o.seq_len,
                                      shared_.spec.heads,
                                      shared_.spec.kv_heads,
                                      shared_.spec.head_dim,
                                      o.attention == Attention::kFlash,
                                      shared_.spec.sliding_window};
  shared_.mask = kernels::window_mask(shape, at::TensorOptions(o.device).dtype(o.type));
  if (!shared_.spec.rope) return;
  const auto positions = local_positions(o.seq_len, shared_.layout.context->rank(), shared_.layout.cp());
  const auto tables = rotary_tables(shared_.spec, positions,
                                    at::TensorOptions(o.device).dtype(kernels::accumulate_type(o.type)));
  shared_.cos = tables.cos;
  shared_.sin = tables.sin;
}

at::Tensor Stage::forward(const MicroStep& micro, at::Tensor in, Tape& tape) {
  const Below below;
  tape.blocks.clear();
  for (const Block& block : blocks_) {
    if (keeper_) keeper_->need(block.group, Pass::kForward);
    auto& saved = tape.blocks.emplace_back();
    for (const UnitPtr& unit : block.units) in = unit->forward(micro, std::move(in), saved.emplace_back());
    if (keeper_) keeper_->done(block.group, Pass::kForward);
  }
  return in;
}

at::Tensor Stage::backward(const MicroStep& micro, at::Tensor grad, Tape tape) {
  const Below below;
  for (std::size_t b = blocks_.size(); b-- > 0;) {
    const Block& block = blocks_[b];
    if (keeper_) keeper_->need(block.group, Pass::kBackward);
    for (std::size_t u = block.units.size(); u-- > 0;)
      grad = block.units[u]->backward(micro, std::move(grad), std::move(tape.blocks[b][u]));
    if (keeper_) keeper_->done(block.group, Pass::kBackward);
    tape.blocks.pop_back();
  }
  return grad;
}

}  // namespace sweep::model
