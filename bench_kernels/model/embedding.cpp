// The embedding: rows of the token table, plus learned positions where the family has them. Relative positions are made
// here too, for the layers that follow.
#include <ATen/ATen.h>

#include <cmath>
#include <optional>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/relative.h"
#include "bench_kernels/model/tensor_parallel.h"

namespace sweep::model {
namespace {

class Embedding final : public Unit {
 public:
  // encoder: the tokens are the micro-batch's sources. reads: the table is there already.
  Embedding(const StageContext& shared, bool encoder, bool reads)
      : Unit(shared), encoder_(encoder), reads_(reads) {
    const ModelSpec& s = spec();
    const shape::Family& family = shape::family_of(s);
    if (family.scales_embedding) scale_ = std::sqrt(static_cast<double>(s.hidden_size));
    add_table(family);
    if (s.rope) return;
    const std::string_view name = encoder ? family.names.encoder_positions : family.names.position_table;
    if (family.relative_positions)
      add_bias(std::string(name));
    else
      positions_ =
          parameters().add({{std::string(name), s.max_positions, {}}}, s.hidden_size, Init::kUniform);
  }

  // Each rank of the tensor group adds the rows that it holds, the first one the positions.
  at::Tensor forward(const MicroBatch& micro, at::Tensor, SavedPtr&) const override {
    if (buckets_.defined()) bias().values = kernels::relative_bias(parameters()[relative_], buckets_);
    const at::Tensor& table = parameters()[table_];
    const at::Tensor out =
        at::empty({shared_.held_rows(ids_of(micro).size(0)), table.size(1)}, table.options());
    const bool adds = learned() && scale_ == 1 && layout().tensor->rank() == 0;
    const auto embed = [&](std::int64_t, const at::Tensor& to) {
      kernels::embed(table, adds ? parameters()[positions_] : at::Tensor(), tokens_of(micro), to);
    };
    sum_rows(layout(), out, embed, false);
    if (scale_ != 1) out.mul_(scale_);
    if (scale_ != 1 && learned()) by_sequence(out).add_(parameters()[positions_].narrow(0, 0, seq()));
    return out;
  }

  at::Tensor backward(const MicroBatch& micro, at::Tensor grad, SavedPtr) const override {
    if (buckets_.defined()) bias_backward();
    if (!parameters().trains(table_)) return {};
    const bool apart = learned() && scale_ != 1;
    if (apart) positions_backward(grad, parameters().gradients().of(positions_));
    if (scale_ != 1) grad.mul_(scale_);
    weights_part(shared_, [this, micro, apart, grad = std::move(grad)] {
      WholeRows whole(layout(), grad, false);
      whole.each([&](const at::Tensor& rows, std::int64_t) {
        kernels::embed_backward(
            rows, tokens_of(micro), parameters().gradients().of(table_),
            learned() && !apart ? parameters().gradients().of(positions_) : kernels::GradOut());
      });
      if (learned()) parameters().gradients().ready(positions_);
      if (!reads_) parameters().gradients().ready(table_);
    });
    return {};
  }

 private:
  void add_bias(const std::string& name) {
    const kernels::Buckets buckets{shape::kRelativeBuckets, shape::kRelativeDistance, encoder_};
    relative_ = parameters().add({{name, buckets.count, {}}}, spec().heads, Init::kUniform);
    buckets_ = kernels::buckets_of_distances(seq(), buckets, shared_.options.device);
  }
  // The bias of the layers that this embedding comes before.
  ScoreBias& bias() const { return encoder_ ? shared_.encoded->encoder_bias : shared_.encoded->decoder_bias; }
  void bias_backward() const {
    bias().values.reset();
    kernels::relative_bias_backward(bias().gradient, buckets_, parameters().gradients().of(relative_));
    parameters().gradients().ready(relative_);
    bias().gradient.reset();
  }
  void add_table(const shape::Family& family) {
    const ModelSpec& s = spec();
    if (reads_) {
      table_ = kTable;
      return parameters().also_reads(kTable);
    }
    table_ = parameters().add({vocabulary_part(shared_, std::string(family.names.token_table))},
                              s.hidden_size, Init::kUniform,
                              s.tie_embeddings && layout().tied_elsewhere ? Role::kTied : Role::kDense);
    TORCH_INTERNAL_ASSERT(table_ == kTable);
  }
  // A view [batch, seq, hidden_size].
  at::Tensor by_sequence(const at::Tensor& rows) const { return rows.unflatten(0, {-1, seq()}); }
  // Sums the gradient of positions, which are added to scaled rows, over the sequences; a processor keeps nothing of it.
  void positions_backward(const at::Tensor& grad, const kernels::GradOut& to) const {
    std::optional<memory::ScratchScope> scratch;
    if (!grad.is_cuda() && kernels::path() != kernels::Path::kPlain) scratch.emplace();
    const at::Tensor sums = by_sequence(grad).sum(0);
    if (!to.add) at::Tensor(to.grad).zero_();
    to.grad.narrow(0, 0, seq()).add_(sums);
  }
  const at::Tensor& ids_of(const MicroBatch& micro) const { return encoder_ ? micro.sources : micro.tokens; }
  std::int64_t seq() const { return encoder_ ? shared_.options.encoder_seq_len : shared_.local_seq(); }
  kernels::Tokens tokens_of(const MicroBatch& micro) const {
    if (micro.documents != nullptr)
      return {micro.tokens, micro.tokens.size(0), first_entry(shared_), micro.documents->places};
    return {ids_of(micro), seq(), first_entry(shared_), shared_.places};
  }
  bool learned() const { return positions_ != Parameters::kNone; }
  bool encoder_, reads_;
  double scale_ = 1;
  // positions_: learned ones, of the rows; relative_: of the scores.
  Parameters::Id table_ = Parameters::kNone, positions_ = Parameters::kNone, relative_ = Parameters::kNone;
  at::Tensor buckets_;  // buckets of relative positions
};

}  // namespace

UnitPtr make_embedding(const StageContext& shared) {
  return std::make_unique<Embedding>(shared, shared.spec.has_encoder(), false);
}

UnitPtr make_decoder_embedding(const StageContext& shared) {
  return std::make_unique<Embedding>(shared, false, true);
}

}  // namespace sweep::model
