#include "bench_kernels/step/selftest.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/optimizer_states.h"
#include "bench_kernels/step/dry_run.h"
#include "bench_kernels/step/traffic_check.h"
#include "schema/codec.h"

namespace sweep::step {

namespace {

using shape::Dimension;
using Sentences = std::vector<std::string>;

// Share of the global norm; differences of a gradient below it are not counted.
constexpr double kFloor = 1e-7;

// The same model and global batch on one rank, without anything that says how and not what is computed.
Trial plain_trial(const Trial& t) {
  const Trial plain;
  Trial one = t;
  one.hardware = plain.hardware;
  one.dp = one.tp = one.pp = one.cp = one.ep = one.nodes = one.gpus_per_node = 1;
  one.micro_batch_size = t.global_batch_size, one.grad_accum = 1;
  one.sp = plain.sp, one.tp_overlap = plain.tp_overlap, one.cp_comm_type = plain.cp_comm_type;
  one.schedule = plain.schedule, one.vpp = plain.vpp, one.stage_layers = plain.stage_layers,
  one.zero = plain.zero, one.dp_shard = plain.dp_shard;
  one.recompute = plain.recompute, one.recompute_every = plain.recompute_every;
  one.vocab_multiple = plain.vocab_multiple;
  one.offload = plain.offload, one.activation_offload = plain.activation_offload;
  return one;
}

at::Tensor exact(const at::Tensor& t) {
  return t.detach().to(at::kCPU).to(at::kDouble);
}

// This rank's share of a whole tensor, as its slice says.
at::Tensor share_of(const at::Tensor& whole, const model::Slice& slice) {
  if (slice.whole == 0) return whole;
  std::vector<at::Tensor> pieces;
  for (const auto& [begin, count] : slice.ranges)
    pieces.push_back(whole.narrow(slice.dimension, begin, count));
  return at::cat(pieces, slice.dimension);
}

double relative(const at::Tensor& mine, const at::Tensor& reference, double floor) {
  const double off = (mine - reference).norm().item<double>();
  return off == 0 ? 0 : off / std::max(reference.norm().item<double>(), floor);
}

// Losses of all ranks' tokens, step by step.
std::vector<double> mean_losses(const ProofInput& in) {
  at::Tensor sums = at::zeros({static_cast<i64>(in.losses.size()) + 1}, at::kDouble);
  for (std::size_t i = 0; i < in.losses.size(); ++i) {
    const auto [loss, tokens] = in.losses[i];
    sums[static_cast<i64>(i)] = tokens > 0 ? loss * static_cast<double>(tokens) : 0.0;
  }
  sums[-1] = static_cast<double>(in.losses.back().second);
  at::Tensor there = sums.to(in.device);
  in.mesh[Dimension::kWorld].all_reduce(there).wait();
  sums = exact(there);
  std::vector<double> means;
  for (i64 i = 0; i + 1 < sums.numel(); ++i)
    means.push_back(sums[i].item<double>() / sums[-1].item<double>());
  return means;
}

// The reference runs on the CPU, also for a step on a GPU: a kernel that is wrong there would agree with itself.
void compare(const ProofInput& in, Proof& out) {
  const parallel::Mesh alone = parallel::alone();
  TrainStep reference(plain_trial(in.trial), at::kCPU, alone, nullptr, kProofOptimizer);
  const auto losses = mean_losses(in);
  double loss = 0;
  for (const double mine : losses) {
    const double there = reference.run().loss;
    const double off = std::abs(mine - there) / std::abs(there);
    if (!(off <= loss)) loss = off;
  }
  std::map<std::string, TrainStep::Tensor> whole;
  double squares = 0;
  for (auto& tensor : reference.tensors()) {
    if (tensor.gradient.defined()) squares += std::pow(exact(tensor.gradient).norm().item<double>(), 2);
    whole.emplace(tensor.name, std::move(tensor));
  }
  double gradient = 0, value = 0;
  for (const auto& mine : in.step.tensors()) {
    const TrainStep::Tensor& there = whole.at(mine.name);
    const double g = mine.gradient.defined()
                         ? relative(exact(mine.gradient), share_of(exact(there.gradient), mine.slice),
                                    kFloor * std::sqrt(squares))
                         : 0;
    const double v = relative(exact(mine.value), share_of(exact(there.value), mine.slice), 1e-30);
    if (!(g <= gradient)) gradient = g, out.worst = mine.name;
    if (!(v <= value)) value = v;
  }
  out.loss = loss, out.gradient = gradient, out.value = value;
}

// Bytes of optimizers for which no number per parameter exists: they keep blocks of eight bits, or rows and columns.
i64 optimizer_bytes(const ProofInput& in) {
  i64 sum = 0;
  for (const parallel::ModelState* state : in.step.states()) {
    for (const i64 elements : state->updated()) sum += shape::optimizer_bytes(in.trial, elements);
    sum += shape::factored_bytes(in.trial, state->factored());
  }
  return sum;
}

// Compares what lasts from step to step, in all chunks, with the ZeRO formulas (experts: per parameter of all
// ranks').
Sentences state_faults(const ProofInput& in) {
  Sentences faults;
  const auto formula = shape::state_bytes(in.trial), of_expert = shape::expert_state_bytes(in.trial);
  parallel::ModelState::Bytes held;
  struct Numbers {
    double dense = 0, experts = 0;
  } all, trained;
  const auto add = [&](Numbers& to, const parallel::ModelState::Elements& more) {
    to.dense += static_cast<double>(more.all - more.experts);
    to.experts += static_cast<double>(more.experts * in.trial.ep);
  };
  for (const parallel::ModelState* state : in.step.states()) {
    const auto bytes = state->bytes();
    held.weights += bytes.weights, held.gradients += bytes.gradients, held.optimizer += bytes.optimizer;
    add(trained, state->count(false)), add(all, state->count(false)), add(all, state->count(true));
  }
  const auto same = [&](const char* what, i64 counted, double shape::StateBytes::*part, const Numbers& of) {
    expect_same(faults, what, static_cast<double>(counted),
                formula.*part * of.dense + of_expert.*part * of.experts);
  };
  same("bytes of weights", held.weights, &shape::StateBytes::weights, all);
  same("bytes of gradients", held.gradients, &shape::StateBytes::gradients, trained);
  if (in.trial.optimizer == OptimizerKind::kAdamw8bit || in.trial.optimizer == OptimizerKind::kAdafactor)
    expect_same(faults, "bytes of optimizer state", static_cast<double>(held.optimizer),
                static_cast<double>(optimizer_bytes(in)));
  else
    same("bytes of optimizer state", held.optimizer, &shape::StateBytes::optimizer, trained);
  return faults;
}

// Small whole numbers, so that every order of summing gives the same ones.
Sentences collective_faults(comm::Channel& world, at::Device device) {
  Sentences faults;
  const i64 n = world.size(), me = world.rank(), each = 1000;
  if (n == 1) return faults;
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor ramp = at::arange(n * each, options).remainder(97);
  const auto expect = [&](const char* what, const at::Tensor& got, const at::Tensor& wanted) {
    if (!at::equal(got, wanted))
      faults.push_back(std::string(what) + " gave wrong numbers on rank " + std::to_string(me));
  };
  const double all = static_cast<double>(n * (n + 1)) / 2;  // sum of the factors 1 to n
  const at::Tensor mine = ramp * static_cast<double>(me + 1);
  at::Tensor out = mine.clone();
  world.all_reduce(out).wait();
  expect("all_reduce", out, ramp * all);
  at::Tensor part = at::empty({each}, options);
  world.reduce_scatter(mine, part).wait();
  expect("reduce_scatter", part, ramp.narrow(0, me * each, each) * all);
  at::Tensor gathered = at::empty({n * each}, options);
  world.all_gather(ramp.narrow(0, me * each, each).contiguous(), gathered).wait();
  expect("all_gather", gathered, ramp);
  at::Tensor exchanged = at::empty({n, each}, options);
  world.all_to_all(mine.view({n, each}), exchanged).wait();
  at::Tensor wanted = at::empty({n, each}, options);
  for (i64 r = 0; r < n; ++r) wanted[r].copy_(ramp.narrow(0, me * each, each) * static_cast<double>(r + 1));
  expect("all_to_all", exchanged, wanted);
  const i64 before = (me + n - 1) % n;
  at::Tensor received = at::empty({n * each}, options);
  world.shift(mine, received, /*stride=*/1, /*tag=*/7).wait();
  expect("send and receive", received, ramp * static_cast<double>(before + 1));
  return faults;
}

// The dry run is exact about the CPU over shared memory; elsewhere it is a forecast and only shown.
void compare_bytes(const ProofInput& in, Proof& out) {
  const auto answer = dry_run(in.trial, in.device.is_cuda() ? Backend::kCuda : Backend::kCpu);
  Sentences faults = state_faults(in);
  const auto& world = in.mesh[Dimension::kWorld].backend();
  // Tokens that choose by themselves decide how many rows an expert gets, and no dry run knows that.
  const bool even = in.trial.spec.experts == 0 || in.trial.routing == Routing::kBalanced;
  const bool exactly = even && in.device.is_cpu() && (!world || world->getBackendName() == "shm");
  out.peak_bytes = in.peak_bytes, out.exact = exactly;
  if (!answer) {
    faults.push_back("the dry run: " + answer.error().message);
  } else {
    const i64 dry = answer->peak_bytes.at(static_cast<std::size_t>(in.mesh.place().pp));
    out.dry_bytes = dry;
    if (exactly && dry != in.peak_bytes)
      faults.push_back("peak of " + std::to_string(in.peak_bytes) + " bytes where the dry run has " +
                       std::to_string(dry));
  }
  out.bytes = std::move(faults);
}

}  // namespace

Proof prove(const ProofInput& given) {
  ProofInput in = given;
  Proof out;
  compare_bytes(in, out);
  in.mesh.reset_traffic();
  const StepTimes last = in.step.run();
  in.losses.emplace_back(last.loss, last.tokens);
  out.traffic = traffic_faults(in.trial, in.mesh, in.step);
  out.sent_bytes = in.mesh.traffic().total_bytes();
  compare(in, out);
  out.collectives = collective_faults(in.mesh[Dimension::kWorld], in.device);
  return out;
}

}  // namespace sweep::step
