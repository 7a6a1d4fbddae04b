#include "bench_kernels/model/transformer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace sweep::model {

using torch::autograd::Node;
using torch::autograd::variable_list;

// Work below the autograd dispatch: nothing computed here is recorded a second time.
struct Below {
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView guard;
};

kernels::Norm Transformer::norm_of(const NormLayer& n) const {
  return {parameters_[n.w], n.b == Parameters::kNone ? at::Tensor() : parameters_[n.b], spec_.norm_eps};
}

kernels::AttentionShape Transformer::attention_shape(std::int64_t batch) const {
  return {batch,
          options_.seq_len,
          spec_.heads,
          spec_.kv_heads,
          spec_.head_dim,
          options_.attention == Attention::kFlash,
          spec_.sliding_window};
}

void Transformer::backward_weight(const Linear& linear, const at::Tensor& dout, const at::Tensor& in,
                                  bool add) const {
  for (const auto& run : parameters_.grads(linear.weight, add)) {
    const at::Tensor part = linear.transposed ? dout : dout.narrow(1, run.begin, run.rows);
    kernels::linear_backward_weight(part, in, linear.transposed, run.out);
  }
  parameters_.ready(linear.weight);
  if (linear.bias.parts.empty()) return;
  for (const auto& run : parameters_.grads(linear.bias, add)) {
    kernels::bias_backward(dout.narrow(1, run.begin, run.rows), run.out);
  }
  parameters_.ready(linear.bias);
}

void Transformer::backward_norm(const NormLayer& n, const at::Tensor& dy, const at::Tensor& x,
                                const kernels::NormStats& stats, const at::Tensor& residual,
                                const at::Tensor& dx, bool add) const {
  const bool has_bias = n.b != Parameters::kNone;
  kernels::norm_backward(dy, x, norm_of(n), stats, residual, dx, parameters_.grad(n.w, add),
                         has_bias ? parameters_.grad(n.b, add) : kernels::GradOut());
  parameters_.ready(n.w);
  if (has_bias) parameters_.ready(n.b);
}

// A node of the step's graph: one differentiable input at most, one output; its saved tensors are plain
// members, freed by its own backward as soon as they have served. Runs once (no retain_graph).
struct StepNode : Node {
  StepNode(const Transformer& model, const MicroStep& micro) : model(model), micro(micro) {}
  variable_list apply(variable_list&& grads) final {
    const Below below;
    at::Tensor dx = backward(std::move(grads[0]));
    variable_list out;
    if (num_outputs() > 0) out.push_back(std::move(dx));
    return out;
  }
  virtual at::Tensor backward(at::Tensor grad) = 0;

  const Transformer& model;
  const MicroStep micro;
};

struct EmbedNode final : StepNode {
  using StepNode::StepNode;
  at::Tensor forward(const at::Tensor& ids) {
    tokens = ids;
    const at::Tensor& table = model.parameters_[model.table_];
    const at::Tensor out = at::empty({ids.size(0), table.size(1)}, table.options().requires_grad(false));
    kernels::embed(table, positions(), tokens, model.options_.seq_len, out);
    return out;
  }
  at::Tensor backward(at::Tensor grad) override {
    const bool add =
        !micro.first || model.spec_.tie_embeddings;  // tied: the head's gradient is there already
    const bool learned = model.positions_ != Parameters::kNone;
    kernels::embed_backward(
        grad, tokens, model.options_.seq_len, model.parameters_.grad(model.table_, add),
        learned ? model.parameters_.grad(model.positions_, !micro.first) : kernels::GradOut());
    if (learned) model.parameters_.ready(model.positions_);
    model.parameters_.ready(model.table_);
    return {};
  }
  at::Tensor positions() const {
    return model.positions_ == Parameters::kNone ? at::Tensor() : model.parameters_[model.positions_];
  }
  at::Tensor tokens;
};

struct AttentionNode final : StepNode {
  AttentionNode(const Transformer& model, const MicroStep& micro, const Block& block)
      : StepNode(model, micro), block(block) {}
  at::Tensor forward(const at::Tensor& input) {
    x = input;
    h = at::empty_like(x);
    stats = kernels::norm(x, model.norm_of(block.attention_norm), h);
    qkv = at::empty({x.size(0), (model.spec_.heads + 2 * model.spec_.kv_heads) * model.spec_.head_dim},
                    x.options());
    kernels::linear(h, block.qkv.value(), {}, qkv);
    rotate(qkv, false);
    state = kernels::attention(qkv, shape(), model.mask_);
    const at::Tensor out = at::empty_like(x);
    kernels::linear(state.out, block.out.value(), x, out);
    return out;
  }
  at::Tensor backward(at::Tensor grad) override {
    const at::Tensor dqkv = at::empty_like(qkv);
    {
      const at::Tensor dout = at::empty_like(state.out);
      kernels::linear_backward_input(grad, block.out.value(), dout);
      model.backward_weight(block.out, grad, state.out, !micro.first);
      kernels::attention_backward(dout, qkv, shape(), state, dqkv);
      state = {};
      qkv.reset();
    }
    rotate(dqkv, true);
    model.backward_weight(block.qkv, dqkv, h, !micro.first);
    kernels::linear_backward_input(dqkv, block.qkv.value(), h);
    model.backward_norm(block.attention_norm, h, x, stats, grad, h, !micro.first);
    x.reset();
    return std::move(h);
  }
  kernels::AttentionShape shape() const { return model.attention_shape(x.size(0) / model.options_.seq_len); }
  void rotate(const at::Tensor& rows, bool back) const {
    if (model.spec_.rope) {
      kernels::rope(rows, model.spec_.heads + model.spec_.kv_heads, model.spec_.head_dim, model.cos_,
                    model.sin_, back);
    }
  }
  const Block& block;
  at::Tensor x, h, qkv;
  kernels::NormStats stats;
  kernels::AttentionState state;
};

struct MlpNode final : StepNode {
  MlpNode(const Transformer& model, const MicroStep& micro, const Block& block)
      : StepNode(model, micro), block(block) {}
  at::Tensor forward(const at::Tensor& input) {
    x = input;
    h = at::empty_like(x);
    stats = kernels::norm(x, model.norm_of(block.mlp_norm), h);
    const std::int64_t width = model.spec_.intermediate_size;
    in = at::empty({x.size(0), model.spec_.swiglu ? 2 * width : width}, x.options());
    kernels::linear(h, block.in.value(), {}, in);
    const at::Tensor activated = at::empty({x.size(0), width}, x.options());
    kernels::activation(kind(), in, activated);
    const at::Tensor out = at::empty_like(x);
    kernels::linear(activated, block.down.value(), x, out);
    return out;
  }
  at::Tensor backward(at::Tensor grad) override {
    {
      const at::Tensor wide = at::empty({x.size(0), model.spec_.intermediate_size}, x.options());
      kernels::linear_backward_input(grad, block.down.value(), wide);
      kernels::activation_backward(kind(), in, wide);
      model.backward_weight(block.down, grad, wide, !micro.first);
    }
    model.backward_weight(block.in, in, h, !micro.first);
    kernels::linear_backward_input(in, block.in.value(), h);
    in.reset();
    model.backward_norm(block.mlp_norm, h, x, stats, grad, h, !micro.first);
    x.reset();
    return std::move(h);
  }
  kernels::Activation kind() const {
    return model.spec_.swiglu ? kernels::Activation::kSwiglu : kernels::Activation::kGelu;
  }
  const Block& block;
  at::Tensor x, h, in;
  kernels::NormStats stats;
};

struct HeadNode final : StepNode {
  HeadNode(const Transformer& model, const MicroStep& micro, const at::Tensor& labels)
      : StepNode(model, micro), labels(labels) {}
  at::Tensor forward(const at::Tensor& input) {
    x = input;
    h = at::empty_like(x);
    stats = kernels::norm(x, model.norm_of(model.final_norm_), h);
    logits = at::empty({x.size(0), model.spec_.vocab_size}, x.options());
    kernels::linear(h, model.head_.value(), {}, logits);
    lse = at::empty({x.size(0)}, x.options().dtype(kernels::accumulate_type(x.scalar_type())));
    kernels::cross_entropy(logits, labels, lse, micro.total);
    return at::empty({}, lse.options());
  }
  at::Tensor backward(at::Tensor) override {
    kernels::cross_entropy_backward(logits, labels, lse, micro.scale / static_cast<double>(x.size(0)));
    for (const auto& run : model.parameters_.grads(model.head_.weight, !micro.first)) {
      kernels::linear_backward_weight(logits, h, false, run.out);
    }
    if (!model.spec_.tie_embeddings)
      model.parameters_.ready(model.head_.weight);  // tied: the embedding's node says so
    kernels::linear_backward_input(logits, model.head_.value(), h);
    logits.reset();
    model.backward_norm(model.final_norm_, h, x, stats, {}, h, !micro.first);
    x.reset();
    return std::move(h);
  }
  at::Tensor labels, x, h, logits, lse;
  kernels::NormStats stats;
};

namespace {

// Runs the node's forward on the input and makes it the history of the output.
template <class N, class... Extra>
at::Tensor record(const Transformer& model, const MicroStep& micro, const at::Tensor& input,
                  const Extra&... extra) {
  auto node = std::shared_ptr<N>(new N(model, micro, extra...), torch::autograd::deleteNode);
  if (input.requires_grad()) node->add_next_edge(torch::autograd::impl::gradient_edge(input));
  at::Tensor out;
  {
    const Below below;
    out = node->forward(input.requires_grad() ? input.detach() : input);
  }
  torch::autograd::set_history(out, node);
  return out;
}

}  // namespace

at::Tensor Transformer::loss(const at::Tensor& tokens, const at::Tensor& labels,
                             const MicroStep& micro) const {
  at::Tensor x = record<EmbedNode>(*this, micro, tokens);
  for (const Block& block : blocks_) {
    x = record<AttentionNode>(*this, micro, x, block);
    x = record<MlpNode>(*this, micro, x, block);
  }
  return record<HeadNode>(*this, micro, x, labels);
}

}  // namespace sweep::model
