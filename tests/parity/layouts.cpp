#include "tests/parity/layouts.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "bench_kernels/step/selftest.h"
#include "tests/parity/one_core.h"
#include "tests/unit/comm/forked_ranks.h"

namespace sweep::testing {
namespace {

using nlohmann::json;

// Frozen tensors have no gradient: zeros.
at::Tensor gradient_of(const step::TrainStep::Tensor& t) {
  return t.gradient.defined() ? t.gradient : at::zeros(t.value.sizes());
}

json share_of(const step::TrainStep::Tensor& t) {
  return {{"name", t.name},
          {"shape", t.value.sizes().vec()},
          {"dimension", t.slice.dimension},
          {"whole", t.slice.whole},
          {"ranges", t.slice.ranges}};
}

// A rank's answer: each tensor's values, then its gradient, as bytes; as JSON they would take longer than the steps.
struct Told {
  json words;
  at::Tensor numbers;
};

Told run_rank(const Trial& trial, const comm::GroupOptions& options, int steps,
              const model::InitialValues::Source& source) {
  const parallel::Mesh mesh = mesh_of(trial, options);
  step::Given given{source, nullptr};
  if (trial.lora_rank > 0 && !source) given.weights = draw_values;
  step::TrainStep step(trial, at::kCPU, mesh, nullptr, step::kProofOptimizer, given);
  json out{{"losses", json::array()}, {"tokens", 0}, {"tensors", json::array()}};
  for (int i = 0; i < steps; ++i) {
    const auto times = step.run();
    out["losses"].push_back(times.loss);
    out["tokens"] = times.tokens;
  }
  std::vector<at::Tensor> numbers;
  for (const auto& tensor : step.tensors()) {
    out["tensors"].push_back(share_of(tensor));
    for (const at::Tensor& each : {tensor.value, gradient_of(tensor)})
      numbers.push_back(each.to(at::kDouble).reshape(-1));
  }
  mesh[shape::Dimension::kWorld].barrier();
  return {out, at::cat(numbers)};
}

void save(const Told& told, const std::string& path) {
  const auto write = [](const std::string& file, const void* data, std::size_t size) {
    std::ofstream(file, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  const auto words = json::to_cbor(told.words);  // JSON's text has no NaN
  write(path + ".words", words.data(), words.size());
  write(path + ".numbers", told.numbers.const_data_ptr(), told.numbers.nbytes());
}

Told saved(const std::string& path) {
  auto bytes = files::read(path + ".numbers").value_or("");
  const auto size = static_cast<i64>(bytes.size() / sizeof(double));
  return {json::from_cbor(files::read(path + ".words").value_or("")),
          at::from_blob(bytes.data(), {size}, at::kDouble).clone()};
}

// A whole tensor under construction: NaN where no rank has written yet.
struct Assembly {
  at::Tensor value, gradient;
};

// Writes a share into its place in the whole, a view that is narrower along that dimension. Numbers that are there already
// must be the same. Loops: operators on tensors this small take ten times as long.
void put(const at::Tensor& whole, const at::Tensor& share, i64 dimension, const std::string& name,
         std::vector<std::string>& faults) {
  if (whole.numel() == 0) return;
  const auto row_of = [dimension](const at::Tensor& t, i64 row) {
    return t.data_ptr<double>() + (dimension == 0 ? 0 : row * t.stride(dimension - 1));
  };
  const i64 adjacent = whole.size(dimension) * whole.stride(dimension);
  double difference = 0, scale = 0;
  for (i64 row = 0; row < whole.numel() / adjacent; ++row) {
    double* to = row_of(whole, row);
    const double* from = row_of(share, row);
    for (i64 i = 0; i < adjacent; ++i) {
      if (!std::isnan(to[i])) difference += (to[i] - from[i]) * (to[i] - from[i]);
      scale += from[i] * from[i];
      to[i] = from[i];
    }
  }
  if (std::sqrt(difference) > 1e-6 * std::sqrt(scale)) faults.push_back("copies of " + name + " differ");
}

void assemble(const json& share, const Assembly& here, std::map<std::string, Assembly>& all,
              std::vector<std::string>& faults) {
  const std::string name = share["name"];
  const auto local = share["shape"].get<std::vector<i64>>();
  const i64 dimension = share["dimension"], size = share["whole"];
  auto shape = local;
  if (size != 0) shape[static_cast<std::size_t>(dimension)] = size;
  Assembly& whole = all[name];
  if (!whole.value.defined()) {
    whole.value = at::full(shape, NAN, at::kDouble);
    whole.gradient = at::full(shape, NAN, at::kDouble);
  }
  auto ranges = share["ranges"].get<std::vector<std::pair<i64, i64>>>();
  if (size == 0) ranges = {{0, local[0]}};
  i64 at = 0;
  for (const auto& [begin, count] : ranges) {
    const auto piece = [&](const at::Tensor& of) { return of.narrow(dimension, at, count); };
    put(whole.value.narrow(dimension, begin, count), piece(here.value), dimension, name, faults);
    put(whole.gradient.narrow(dimension, begin, count), piece(here.gradient), dimension, name + ".grad",
        faults);
    at += count;
  }
}

WholeRun merge(const std::vector<Told>& ranks, std::vector<std::string> faults) {
  WholeRun run;
  std::map<std::string, Assembly> all;
  double tokens = 0;
  for (const auto& [rank, numbers] : ranks) {
    const double mine = rank["tokens"];
    const auto losses = rank["losses"].get<std::vector<double>>();
    run.losses.resize(losses.size(), 0.0);
    for (std::size_t i = 0; i < losses.size(); ++i) run.losses[i] += losses[i] * mine;
    tokens += mine;
    i64 at = 0;
    for (const json& share : rank["tensors"]) {
      const auto shape = share["shape"].get<std::vector<i64>>();
      const i64 size = c10::multiply_integers(shape);
      const auto next = [&, begin = at](i64 place) {
        return numbers.narrow(0, begin + place * size, size).view(shape);
      };
      assemble(share, {next(0), next(1)}, all, faults);
      at += 2 * size;
    }
  }
  for (double& loss : run.losses) loss /= tokens;
  for (const auto& [name, whole] : all) {
    if (whole.value.isnan().any().item<bool>()) faults.push_back(name + " has holes or NaN");
    run.tensors[name] = {whole.value, whole.gradient};
  }
  run.faults = std::move(faults);
  return run;
}

double relative(const at::Tensor& a, const at::Tensor& b, double floor) {
  const double scale = std::max(b.norm().item<double>(), floor);
  return (a - b).norm().item<double>() / scale;
}

// LibTorch's work at its first step (registries, symbols, pages) is done before ranks are forked, and not by each of them.
// One thread does it: a forked process has no others.
class WarmUp : public ::testing::Environment {
 public:
  void SetUp() override {
    at::set_num_threads(1);
    const parallel::Mesh mesh = parallel::alone();
    step::TrainStep(with_degrees(tiny_trial(), 1, 1, 1, 1), at::kCPU, mesh, nullptr).run();
  }
};
const auto* const warm_up = ::testing::AddGlobalTestEnvironment(new WarmUp);

}  // namespace

// Values of every tensor for a trial with adapters: their second matrix starts at zero otherwise, and the
// first one would have no gradient.
void draw_values(const model::Part& part, const at::Tensor& share) {
  auto shape = share.sizes().vec();
  auto ranges = part.slice.ranges;
  const auto dimension = static_cast<std::size_t>(part.slice.dimension);
  if (part.slice.whole != 0)
    shape[dimension] = part.slice.whole;
  else
    ranges = {{0, share.size(0)}};
  at::manual_seed(std::hash<std::string>{}(part.name));
  at::Tensor whole = at::randn(shape, at::kDouble).mul_(0.05);
  // Norms near one; larger biases would leave attention nearly even, and queries next to no gradient.
  if (shape.size() == 1 && !part.name.ends_with(".bias")) whole.add_(1);
  i64 at = 0;
  for (const auto& [begin, count] : ranges) {
    share.narrow(part.slice.dimension, at, count).copy_(whole.narrow(part.slice.dimension, begin, count));
    at += count;
  }
}

parallel::Mesh mesh_of(const Trial& trial, const comm::GroupOptions& options) {
  const auto dims = shape::ParallelDims::make(trial);
  require(dims.has_value(), dims ? "" : dims.error().message);
  return parallel::Mesh(*dims, options.rank, [&](const parallel::Mesh::Meeting& met) {
    comm::GroupOptions of_group = options;
    of_group.name = met.name, of_group.rank = met.rank, of_group.world = met.size();
    return comm::make_backend(trial.backend, of_group);
  });
}

WholeRun run_layout(const Trial& trial, int steps, const model::InitialValues::Source& source) {
  const ScratchFolder results;
  const auto file = [&](int rank) { return results.path() + "/" + std::to_string(rank); };
  const int world = static_cast<int>(trial.world());
  const OneCore core;
  const auto statuses = run_ranks(world, [&](const comm::GroupOptions& options) {
    save(run_rank(trial, options, steps, source), file(options.rank));
  });
  std::vector<std::string> faults;
  std::vector<Told> ranks;
  for (int rank = 0; rank < world; ++rank) {
    if (statuses[static_cast<std::size_t>(rank)] != 0) {
      faults.push_back("rank " + std::to_string(rank) + " failed");
      continue;
    }
    ranks.push_back(saved(file(rank)));
  }
  return merge(ranks, std::move(faults));
}

Distance distance(const WholeRun& a, const WholeRun& reference) {
  Distance d;
  for (std::size_t i = 0; i < reference.losses.size(); ++i) {
    const double there = reference.losses[i], here = i < a.losses.size() ? a.losses[i] : NAN;
    const double off = std::abs(here - there) / std::abs(there);
    if (!(off <= d.loss)) d.loss = off;
  }
  double gradients = 0, values = 0;
  for (const auto& [name, whole] : reference.tensors) {
    gradients += std::pow(whole.gradient.norm().item<double>(), 2);
    values += std::pow(whole.value.norm().item<double>(), 2);
  }
  for (const auto& [name, whole] : reference.tensors) {
    const auto found = a.tensors.find(name);
    if (found == a.tensors.end()) return {INFINITY, INFINITY, INFINITY, name + " is missing"};
    // A softmax does not see what all scores have in common, so the gradient of a key's bias is zero without rotary
    // positions: what is there is noise, and so is the update.
    const bool noise = name.ends_with("k_proj.bias");
    const double gradient =
        relative(found->second.gradient, whole.gradient, (noise ? 1e-5 : 1e-7) * std::sqrt(gradients));
    if (!(gradient <= d.gradient)) d.gradient = gradient, d.worst = name;
    const double value = relative(found->second.value, whole.value, noise ? 1e-5 * std::sqrt(values) : 1e-30);
    if (!(value <= d.value)) d.value = value;
  }
  return d;
}

bool long_run() {
  return std::getenv("SWEEP_LONG") != nullptr;
}

Trial tiny_trial() {
  Trial t;
  t.model = "tiny";
  t.spec.layers = 4, t.spec.hidden_size = 32, t.spec.heads = 4, t.spec.kv_heads = 4, t.spec.head_dim = 8;
  t.spec.intermediate_size = 48, t.spec.vocab_size = 64;
  t.seq_len = 16, t.micro_batch_size = 1, t.grad_accum = 8, t.global_batch_size = 8;
  t.backend = CommBackend::kShm;
  return t;
}

void windows_by_layer(Trial& t) {
  t.spec.family = "gemma3_text", t.spec.sliding_window = 5, t.spec.sliding_window_pattern = 2;
  t.spec.rope_local_theta = 100, t.spec.tie_embeddings = true;
}

void with_sinks(Trial& t) {
  t.spec.family = "gpt_oss", t.spec.experts = 4, t.spec.experts_per_token = 2;
  t.spec.attention_bias = t.spec.linear_bias = true;
  t.spec.sliding_window = 5, t.spec.sliding_window_pattern = 2;
}

Trial with_degrees(Trial t, i64 dp, i64 tp, i64 pp, i64 cp, i64 ep) {
  t.dp = dp, t.tp = tp, t.pp = pp, t.cp = cp, t.ep = ep;
  t.nodes = 1, t.gpus_per_node = t.world();
  t.grad_accum = t.global_batch_size / (dp * t.micro_batch_size);
  return t;
}

std::vector<std::vector<double>> on_ranks(const Trial& trial, const StepBody& body,
                                          optim::OptimizerOptions optimizer) {
  EXPECT_EQ(step::unsupported(trial, at::kCPU), std::nullopt);
  const OneCore core;
  const auto ends =
      comm::run_forked(static_cast<int>(trial.world()), kLongestWait, [&](const comm::GroupOptions& options) {
        const parallel::Mesh mesh = mesh_of(trial, options);
        step::TrainStep step(trial, at::kCPU, mesh, nullptr, optimizer);
        const json numbers = body(step, options.rank);
        mesh[shape::Dimension::kWorld].barrier();
        return numbers.dump();
      });
  std::vector<std::vector<double>> out;
  for (const comm::RankEnd& end : ends) {
    EXPECT_EQ(end.status, 0) << "rank " << out.size() << ": " << end.text;
    const json numbers = json::parse(end.text, nullptr, false);
    out.push_back(numbers.is_array() ? numbers.get<std::vector<double>>() : std::vector<double>(8, NAN));
  }
  return out;
}

}  // namespace sweep::testing
