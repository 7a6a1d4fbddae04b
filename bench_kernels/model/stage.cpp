#include "bench_kernels/model/stage.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <utility>

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
void Stage::add_block(std::int64_t layer, Make... make) {
  parameters_.begin_group();
  Block block;
  block.layer = layer;
  block.group = parameters_.groups() - 1;
  (block.units.push_back(make()), ...);
  blocks_.push_back(std::move(block));
}

Stage::Stage(const ModelSpec& spec, const Options& options, const Layout& layout, const Chunk& chunk)
    : parameters_(InitialValues(options.seed, options.source, options.codes, options.filled)),
      shared_{spec, options, layout, &parameters_, {},       {},       {},
              {},   nullptr, &load_, nullptr,      &routes_, &encoded_},
      host_(options.device) {
  const Below below;
  if (options.adapters.any()) parameters_.freeze_base();
  if (chunk.embedding) add_block(-1, [&] { return make_embedding(shared_); });
  if (chunk.embedding && spec.has_encoder()) add_encoder();
  add_layers(chunk);
  const bool tied_here = spec.tie_embeddings && chunk.embedding;
  if (chunk.head) add_block(-1, [&] { return make_head(shared_, tied_here ? kTable : Parameters::kNone); });
  make_tables();
}

// Its layers; then its last norm with the decoder's embedding, after which the decoder's layers follow.
void Stage::add_encoder() {
  for (std::int64_t layer = 0; layer < shared_.spec.encoder_layers; ++layer)
    add_block(
        layer, [&] { return make_attention(shared_, layer); }, [&] { return make_mlp(shared_, layer); });
  add_block(
      -1, [&] { return make_encoder_end(shared_); }, [&] { return make_decoder_embedding(shared_); });
}

void Stage::add_layers(const Chunk& chunk) {
  const ModelSpec& spec = shared_.spec;
  for (std::int64_t i = 0; i < chunk.layers; ++i) {
    const std::int64_t layer = spec.encoder_layers + chunk.first_layer + i;
    const auto attention = [&] {
      return spec.latent() ? make_latent_attention(shared_, layer) : make_attention(shared_, layer);
    };
    const auto mlp = [&] {
      return spec.has_experts(layer) ? make_moe(shared_, layer) : make_mlp(shared_, layer);
    };
    if (spec.has_encoder())
      add_block(
          i, attention, [&] { return make_cross_attention(shared_, layer); }, mlp);
    else
      add_block(i, attention, mlp);
  }
}

void Stage::make_tables() {
  const Options& o = shared_.options;
  const kernels::AttentionShape shape{1,
                                      o.seq_len,
                                      shared_.spec.heads,
                                      shared_.spec.kv_heads,
                                      shared_.spec.head_dim,
                                      o.attention,
                                      shared_.spec.sliding_window};
  shared_.mask = kernels::window_mask(shape, at::TensorOptions(o.device).dtype(o.type));
  const auto positions = local_positions(o.seq_len, shared_.layout.context->rank(), shared_.layout.cp());
  if (!shared_.spec.rope) {
    if (shared_.layout.cp() > 1) shared_.places = position_tensor(positions, o.device);
    return;
  }
  const at::TensorOptions exact = at::TensorOptions(o.device).dtype(kernels::accumulate_type(o.type));
  shared_.angles = angles_ = rotary_tables(shared_.spec, positions, exact, false);
  if (shared_.spec.rope_local_theta > 0)
    shared_.local_angles = local_angles_ = rotary_tables(shared_.spec, positions, exact, true);
}

// The angles of the last micro-batch's rows stay until those of another are needed.
void Stage::take_documents(const MicroBatch& micro) {
  if (shared_.documents == micro.documents) return;
  shared_.documents = micro.documents;
  if (!shared_.spec.rope) return;
  const auto of_rows = [&](at::Tensor& table, const at::Tensor& by_position) {
    table.reset();
    table = at::index(by_position, {std::optional<at::Tensor>(micro.documents->places)});
  };
  of_rows(shared_.angles.cos, angles_.cos), of_rows(shared_.angles.sin, angles_.sin);
  if (!local_angles_.cos.defined()) return;
  of_rows(shared_.local_angles.cos, local_angles_.cos), of_rows(shared_.local_angles.sin, local_angles_.sin);
}

at::Tensor Stage::run(const MicroBatch& micro, std::size_t b, at::Tensor in, Tape::Block& saved) const {
  for (const UnitPtr& unit : blocks_[b].units)
    in = unit->forward(micro, std::move(in), saved.units.emplace_back());
  return in;
}

// Leaves of a block's forward what its backward will find: nothing that is computed again, and the rest of a
// layer on its way to the host.
void Stage::keep(std::size_t b, Tape& tape) {
  Tape::Block& saved = tape.blocks[b];
  if (recomputes(b)) saved.units.clear();
  if (blocks_[b].layer < 0 || !shared_.options.activation_offload) return;
  std::vector<at::Tensor*> tensors{&saved.in};
  for (const SavedPtr& unit : saved.units)
    if (unit)
      for (at::Tensor* tensor : unit->tensors()) tensors.push_back(tensor);
  saved.parcel = host_.send(tensors);
}

// Waits for what block b needs, and starts to fetch what the block before it needs.
void Stage::bring_back(std::size_t b, Tape& tape) {
  host_.fetch(tape.blocks[b].parcel);
  host_.arrive(tape.blocks[b].parcel);
  if (b > 0) host_.fetch(tape.blocks[b - 1].parcel);
}

// Runs the layers from the kept input to block b again.
void Stage::recompute(const MicroBatch& micro, std::size_t b, Tape& tape) {
  const std::size_t first = start_of(b);
  host_.fetch(tape.blocks[first].parcel);
  host_.arrive(tape.blocks[first].parcel);
  at::Tensor in = std::move(tape.blocks[first].in);
  for (std::size_t i = first; i < b; ++i) {
    need(i, Pass::kRecompute);
    in = run(micro, i, std::move(in), tape.blocks[i]);
    done(i, Pass::kRecompute);
  }
  run(micro, b, std::move(in), tape.blocks[b]);
}

at::Tensor Stage::forward(const MicroBatch& micro, at::Tensor in, Tape& tape) {
  const Below below;
  take_documents(micro);
  tape.blocks.clear();
  tape.blocks.reserve(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    need(b, Pass::kForward);
    auto& saved = tape.blocks.emplace_back();
    if (recomputes(b) && start_of(b) == b) saved.in = in;
    in = run(micro, b, std::move(in), saved);
    keep(b, tape);
    done(b, Pass::kForward);
  }
  host_.settle();
  tape.encoded = std::exchange(encoded_, {});
  return in;
}

at::Tensor Stage::evaluate(const MicroBatch& micro, at::Tensor in) {
  const Below below;
  take_documents(micro);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    need(b, Pass::kEvaluate);
    for (const UnitPtr& unit : blocks_[b].units) in = unit->evaluate(micro, std::move(in));
    done(b, Pass::kEvaluate);
  }
  shared_.documents = nullptr;  // they may go with the caller's batch
  encoded_ = {};
  return in;
}

at::Tensor Stage::backward(const MicroBatch& micro, at::Tensor grad, Tape tape) {
  return backward(micro, std::move(grad), std::move(tape), nullptr);
}

at::Tensor Stage::backward_input(const MicroBatch& micro, at::Tensor grad, Tape tape, Later& later) {
  later.assign(blocks_.size(), {});
  return backward(micro, std::move(grad), std::move(tape), &later);
}

void Stage::backward_weights(Later later) {
  const Below below;
  for (std::size_t b = blocks_.size(); b-- > 0;) {
    need(b, Pass::kBackwardWeights);
    for (auto& work : later[b]) std::exchange(work, nullptr)();  // frees what it kept
    done(b, Pass::kBackwardWeights);
  }
}

at::Tensor Stage::backward(const MicroBatch& micro, at::Tensor grad, Tape tape, Later* later) {
  const Below below;
  take_documents(micro);
  const Pass pass = later ? Pass::kBackwardInput : Pass::kBackward;
  encoded_ = std::exchange(tape.encoded, {});
  for (std::size_t b = blocks_.size(); b-- > 0;) {
    need(b, pass);
    shared_.later = later ? &(*later)[b] : nullptr;
    if (shared_.options.activation_offload) bring_back(b, tape);
    if (recomputes(b) && tape.blocks[b].units.empty()) recompute(micro, b, tape);
    for (std::size_t u = blocks_[b].units.size(); u-- > 0;)
      grad = blocks_[b].units[u]->backward(micro, std::move(grad), std::move(tape.blocks[b].units[u]));
    done(b, pass);
    tape.blocks.pop_back();
  }
  shared_.later = nullptr;
  return grad;
}

}  // namespace sweep::model
