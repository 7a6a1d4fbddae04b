#include "bench_kernels/parallel/pipeline.h"

#include <ATen/ATen.h>

#include <utility>

#include "bench_kernels/shape/stage_split.h"

namespace sweep::parallel {

using shape::Act;
using shape::Action;

Pipeline::Part::Part(const Trial& t, const model::Options& options, const Mesh& mesh,
                     const model::Chunk& chunk, optim::OptimizerOptions adamw)
    : stage(t.spec, options, layout_of(t, mesh), chunk),
      state(stage.parameters(), mesh, t, at::TensorOptions(options.device).dtype(options.type), adamw) {
  stage.set_keeper(&state);
}

Pipeline::Pipeline(const Trial& t, const model::Options& options, const Mesh& mesh, i64 micros,
                   optim::OptimizerOptions adamw)
    : plan_(shape::Pipeline::of(t)), channel_(mesh[Dimension::kPipeline]), place_(mesh.place().pp) {
  set_micros(micros);
  const auto shares = shape::split_stages(t, plan_.stages());
  for (i64 chunk = 0; chunk < plan_.chunks; ++chunk) {
    const auto& share = shares[static_cast<std::size_t>(plan_.stage(place_, chunk))];
    parts_.push_back(std::make_unique<Part>(
        t, options, mesh, model::Chunk{share.first_layer, share.layers, share.embedding, share.head}, adamw));
  }
  if (t.cuda_graph && options.device.is_cuda()) graphs_ = std::make_unique<StepGraphs>(mesh);
  rows_split_ = t.sp ? t.tp : 1;
  const i64 rows = t.micro_batch_size * t.seq_len / t.cp / rows_split_;
  message_shape_ = {rows, t.spec.hidden_size};
  message_options_ = at::TensorOptions(options.device).dtype(options.type);
}

void Pipeline::set_micros(i64 micros) {
  if (micros == plan_.micros && !actions_.empty()) return;
  plan_.micros = micros;
  actions_ = shape::make_schedule(plan_)[static_cast<std::size_t>(place_)];
}

std::vector<const ModelState*> Pipeline::states() const {
  std::vector<const ModelState*> states;
  for (const auto& part : parts_) states.push_back(&part->state);
  return states;
}

void Pipeline::wait(comm::Pending& pending, const Action& action, const Watch& watch) {
  if (!pending.under_way()) return;
  watch(Moment::kWaitBegins, action.act);
  pending.wait();
  watch(Moment::kWaitEnds, action.act);
}

void Pipeline::post_send(const Action& action, const Watch& watch) {
  const i64 peer = peer_of(plan_, place_, action);
  comm::Pending& last = sends_[peer];
  wait(last, action, watch);
  const at::Tensor result = std::move(flight(action).result);
  last =
      channel_.send(result, static_cast<int>(peer), static_cast<int>(message_number(plan_, place_, action)));
}

void Pipeline::post_receive(const Action& action) {
  Message& message = action.act == Act::kRecvForward ? flight(action).activation : flight(action).gradient;
  message.tensor = at::empty(message_shape_, message_options_);
  message.pending = channel_.recv(message.tensor, static_cast<int>(peer_of(plan_, place_, action)),
                                  static_cast<int>(message_number(plan_, place_, action)));
}

void Pipeline::begin_gradients(const Action& action) {
  part(action).state.begin_backward(--backwards_left_[static_cast<std::size_t>(action.chunk)] == 0);
}

void Pipeline::backward(const Action& action, const model::MicroBatch& micro) {
  Flight& now = flight(action);
  model::Stage& stage = part(action).stage;
  if (shape::splits_backward(plan_.kind)) {
    now.result = stage.backward_input(micro, std::move(now.gradient.tensor), std::move(now.tape), now.later);
    return;
  }
  begin_gradients(action);
  now.result = stage.backward(micro, std::move(now.gradient.tensor), std::move(now.tape));
}

void Pipeline::compute(const Action& action, const model::MicroBatch& micro, const Watch& watch) {
  Flight& now = flight(action);
  if (action.act == Act::kForward) wait(now.activation.pending, action, watch);
  if (action.act == Act::kBackward) wait(now.gradient.pending, action, watch);
  watch(Moment::kBegins, action.act);
  if (graphs_)
    work_as_graph(action, micro);
  else
    work(action, micro);
  watch(Moment::kEnds, action.act);
}

void Pipeline::work(const Action& action, const model::MicroBatch& micro) {
  Flight& now = flight(action);
  if (action.act == Act::kForward) {
    now.result = part(action).stage.forward(micro, std::move(now.activation.tensor), now.tape);
  } else if (action.act == Act::kBackward) {
    backward(action, micro);
  } else {
    begin_gradients(action);
    part(action).stage.backward_weights(std::move(now.later));
  }
}

// A graph cannot wait for what another one began: each backward ends with its reductions.
void Pipeline::work_as_graph(const Action& action, const model::MicroBatch& micro) {
  const bool forward = action.act == Act::kForward, last = action.micro == plan_.micros - 1;
  if (forward) graphs_->take(micro);
  graphs_->run({action.act, action.micro == 0, last}, [&] {
    backwards_left_.front() = plan_.micros - action.micro;
    work(action, graphs_->taken(micro));
    ModelState& state = part(action).state;
    if (forward) return;
    if (last)
      state.finish_gradients();
    else
      state.settle_gradients();
  });
}

void Pipeline::run(const std::function<model::MicroBatch(i64)>& micro, const Watch& watch) {
  flights_ = std::vector<Flight>(static_cast<std::size_t>(plan_.chunks * plan_.micros));
  backwards_left_.assign(parts_.size(), plan_.micros);
  if (graphs_) graphs_->begin_step();
  const bool captured = graphs_ && graphs_->launches_only();
  for (const auto& part : parts_) captured ? part->state.begin_captured_step() : part->state.begin_step();
  for (const Action& action : actions_) {
    if (shape::computes(action.act))
      compute(action, micro(action.micro), watch);
    else if (shape::sends(action.act))
      post_send(action, watch);
    else
      post_receive(action);
  }
  for (auto& [peer, pending] : sends_) wait(pending, actions_.back(), watch);
  flights_.clear();
}

void Pipeline::finish_gradients() {
  if (graphs_) return;
  for (const auto& part : parts_) part->state.finish_gradients();
}

void Pipeline::evaluate(const model::MicroBatch& micro, const std::function<void(bool waits)>& watch) {
  const i64 ranks = plan_.ranks, last = plan_.stages() - 1;
  const auto before = static_cast<int>((place_ + ranks - 1) % ranks),
             after = static_cast<int>((place_ + 1) % ranks);
  const i64 rows = micro.tokens.numel() / rows_split_;
  if (graphs_) graphs_->forget();
  std::vector<Message> sent;
  for (i64 chunk = 0; chunk < plan_.chunks; ++chunk) {
    const i64 stage = plan_.stage(place_, chunk);
    at::Tensor in;
    if (stage > 0) {
      in = at::empty({rows, message_shape_[1]}, message_options_);
      watch(true);
      channel_.recv(in, before, static_cast<int>(stage)).wait();
    }
    watch(false);
    in = parts_[static_cast<std::size_t>(chunk)]->stage.evaluate(micro, std::move(in));
    if (stage == last) continue;
    sent.push_back({in, {}});
    sent.back().pending = channel_.send(in, after, static_cast<int>(stage + 1));
  }
  for (Message& message : sent) message.pending.wait();
}

}  // namespace sweep::parallel
