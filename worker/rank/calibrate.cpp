#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "bench_kernels/comm/cuda_plugin.h"
#include "bench_kernels/comm/time_collective.h"
#include "bench_kernels/kernels/attention_block.h"
#include "schema/calibration.h"
#include "schema/codec.h"
#include "worker/rank/machine_findings.h"

namespace sweep::rank {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostCalls = 5000;
// Everything is measured so often, one round after the other: what disturbs the machine for a while is in one
// of them only.
constexpr std::size_t kRounds = 3;

struct Shape {
  i64 m, n, k;
};

// Rows are tokens of a micro-batch, widths those of the layers: square as attention's, then up and down as
// the MLP's.
std::vector<Shape> matmul_shapes(bool on_gpu) {
  const std::vector<i64> rows = on_gpu ? std::vector<i64>{512, 4096, 16384} : std::vector<i64>{32, 256, 1024};
  const std::vector<i64> widths =
      on_gpu ? std::vector<i64>{512, 1024, 2048, 4096, 8192} : std::vector<i64>{64, 128, 256, 512};
  std::vector<Shape> out;
  for (const i64 width : widths)
    for (const i64 m : rows) {
      out.push_back({m, width, width});
      out.push_back({m, 4 * width, width});
      out.push_back({m, width, 4 * width});
    }
  return out;
}

// The products of a layer's forward and backward pass, its gradients of weights too, of widths that models have.
std::vector<Shape> layer_shapes(bool on_gpu) {
  const std::vector<i64> rows = on_gpu ? std::vector<i64>{1024, 2048, 8192} : std::vector<i64>{128};
  const std::vector<std::array<i64, 2>> layers =
      on_gpu ? std::vector<std::array<i64, 2>>{{2048, 2048}, {5632, 2048},  {6144, 4096},  {14336, 4096},
                                               {1024, 8192}, {28672, 8192}, {128256, 4096}}
             : std::vector<std::array<i64, 2>>{{64, 64}, {176, 64}};
  std::vector<Shape> out;
  for (const auto& [n, k] : layers)
    for (const i64 m : rows) {
      out.push_back({m, n, k});
      out.push_back({m, k, n});
      out.push_back({n, k, m});
    }
  return out;
}

struct Attention {
  i64 heads, length, size;
};
std::vector<Attention> attention_shapes(bool on_gpu) {
  if (!on_gpu) return {{4, 64, 16}, {4, 256, 16}};
  return {{16, 4096, 64},  {32, 1024, 128}, {32, 2048, 128},
          {32, 4096, 128}, {32, 8192, 128}, {8, 32768, 128}};
}

at::ScalarType type_of(const std::string& precision) {
  return precision == "bf16" ? at::kBFloat16 : precision == "fp16" ? at::kHalf : at::kFloat;
}

template <class... Sizes>
std::string shape_text(i64 first, Sizes... rest) {
  std::string out = std::to_string(first);
  ((out += "x" + std::to_string(rest)), ...);
  return out;
}

class Calibration {
 public:
  Calibration(const CalibrationRequest& request, const Device& device, ProgressWriter& progress)
      : request_(request), device_(device), progress_(progress) {}

  void machine();
  void kernels();
  void group(comm::Channel&, RankRecord&);
  CalibrationFindings findings;

 private:
  void settle() const {
    if (device_.is_cuda()) comm::cuda_plugin()->synchronize(device_.place().index());
  }
  template <class Work>
  double seconds_of(Work&& work);
  void matmul(at::ScalarType type, const std::string& precision, const Shape& shape);
  void product(const std::string& precision, const Shape& shape);
  void batched(const std::string& precision, i64 batch, const Shape& shape);
  void attention(const std::string& precision, const Attention& shape, bool causal);
  void copy(i64 bytes);
  void launch();

  const CalibrationRequest& request_;
  const Device& device_;
  ProgressWriter& progress_;
};

// The mean of as many calls as fill the time of one measurement.
template <class Work>
double Calibration::seconds_of(Work&& work) {
  progress_.begin_step();
  const auto mean_of = [&](int calls) {
    const auto from = Clock::now();
    for (int i = 0; i < calls; ++i) work();
    settle();
    return std::max(std::chrono::duration<double>(Clock::now() - from).count() / calls, 1e-9);
  };
  work();
  settle();
  const double once = mean_of(1);
  return mean_of(static_cast<int>(std::clamp(request_.item_s / once, 1.0, kMostCalls)));
}

void Calibration::matmul(at::ScalarType type, const std::string& precision, const Shape& shape) {
  const at::Tensor a = device_.random_matrix(shape.m, shape.k, type),
                   b = device_.random_matrix(shape.k, shape.n, type);
  at::Tensor out = at::empty({shape.m, shape.n}, a.options());
  findings.matmul.push_back(
      {precision, shape.m, shape.n, shape.k, seconds_of([&] { at::mm_out(out, a, b); })});
}

void Calibration::copy(i64 bytes) {
  const at::Tensor from = at::ones({bytes / 4}, at::TensorOptions(device_.place()).dtype(at::kFloat));
  at::Tensor to = at::empty_like(from);
  findings.copies.push_back({2 * bytes, seconds_of([&] { to.copy_(from); })});
}

// Host time alone: nothing waits for the device within so few calls.
void Calibration::launch() {
  constexpr int kCalls = 1000;
  at::Tensor few = at::zeros({64}, at::TensorOptions(device_.place()).dtype(at::kFloat));
  progress_.begin_step();
  settle();
  const auto from = Clock::now();
  for (int i = 0; i < kCalls; ++i) few.add_(1);
  findings.launch_s = std::chrono::duration<double>(Clock::now() - from).count() / kCalls;
  settle();
}

void Calibration::machine() {
  launch();
  for (i64 bytes = i64{64} << 10; bytes <= (device_.is_cuda() ? i64{1} << 30 : i64{64} << 20); bytes *= 8)
    copy(bytes);
  for (const std::string& precision : request_.precisions) {
    for (const Shape& shape : matmul_shapes(device_.is_cuda())) matmul(type_of(precision), precision, shape);
  }
}

void Calibration::product(const std::string& precision, const Shape& s) {
  const at::Tensor a = device_.random_matrix(s.m, s.k, type_of(precision)),
                   b = device_.random_matrix(s.k, s.n, type_of(precision));
  at::Tensor out = at::empty({s.m, s.n}, a.options());
  findings.kernels.push_back(
      {"mm", shape_text(s.m, s.n, s.k), precision, seconds_of([&] { at::mm_out(out, a, b); })});
}

void Calibration::batched(const std::string& precision, i64 batch, const Shape& s) {
  const auto type = type_of(precision);
  const at::Tensor a = device_.random_matrix(batch * s.m, s.k, type).view({batch, s.m, s.k}),
                   b = device_.random_matrix(batch * s.k, s.n, type).view({batch, s.k, s.n});
  at::Tensor out = at::empty({batch, s.m, s.n}, a.options());
  findings.kernels.push_back(
      {"bmm", shape_text(batch, s.m, s.n, s.k), precision, seconds_of([&] { at::bmm_out(out, a, b); })});
}

void Calibration::attention(const std::string& precision, const Attention& s, bool causal) {
  const auto heads = [&] {
    return device_.random_matrix(s.length, s.heads * s.size, type_of(precision))
        .view({1, s.length, s.heads, s.size});
  };
  const at::Tensor q = heads(), k = heads(), v = heads(), dout = heads();
  const double scale = 1 / std::sqrt(static_cast<double>(s.size));
  const std::string suffix = causal ? "_causal" : "", shape = shape_text(s.heads, s.length, s.size);
  kernels::AttentionBlock block = kernels::attention_block(q, k, v, causal, scale);
  findings.kernels.push_back({"attention" + suffix, shape, precision,
                              seconds_of([&] { block = kernels::attention_block(q, k, v, causal, scale); })});
  const at::Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
  findings.kernels.push_back(
      {"attention_backward" + suffix, shape, precision, seconds_of([&] {
         kernels::attention_block_backward({dout, q, k, v, block, causal, scale}, {dq, dk, dv, false});
       })});
}

void Calibration::kernels() {
  const bool on_gpu = device_.is_cuda();
  for (const std::string& precision : request_.precisions) {
    for (const Shape& shape : layer_shapes(on_gpu)) product(precision, shape);
    if (on_gpu) {
      batched(precision, 32, {2048, 2048, 128});
      batched(precision, 32, {2048, 128, 2048});
    } else {
      batched(precision, 4, {64, 64, 16});
    }
    if (on_gpu && precision == "fp32") continue;  // FlashAttention is of 16 bits there
    for (const Attention& shape : attention_shapes(on_gpu))
      for (const bool causal : {false, true}) attention(precision, shape, causal);
  }
}

void Calibration::group(comm::Channel& channel, RankRecord& record) {
  if (channel.alone()) throw std::invalid_argument("a calibration of collectives needs a group of two ranks");
  const auto wait = [this] { settle(); };
  for (const comm::Kind kind : comm::kMeasuredKinds)
    for (i64 bytes = request_.smallest_bytes; bytes <= request_.largest_bytes; bytes *= 4) {
      progress_.begin_step();
      const auto timing = comm::time_collective(channel, kind, bytes, device_.place(), wait, request_.item_s);
      findings.collectives.push_back(
          {comm::name_of(kind), timing.bytes, std::max(timing.seconds, 1e-9), timing.wrong});
      if (timing.wrong == 0 || record.outcome == Outcome::kInvalid) continue;
      record.outcome = Outcome::kInvalid;
      record.message = std::to_string(timing.wrong) + " elements of a " + comm::name_of(kind) + " of " +
                       std::to_string(timing.bytes) + " bytes over " + std::to_string(channel.size()) +
                       " ranks are wrong";
    }
}

double median(std::array<double, kRounds> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRounds / 2];
}

// The rows of all rounds are the same but for their times, and for the wrong elements.
CalibrationFindings joined(const std::array<CalibrationFindings, kRounds>& rounds) {
  CalibrationFindings out = rounds.front();
  const auto over_rounds = [&](auto&& seconds_in) {
    std::array<double, kRounds> all{};
    for (std::size_t i = 0; i < kRounds; ++i) all[i] = seconds_in(rounds[i]);
    return median(all);
  };
  out.launch_s = over_rounds([](const auto& r) { return r.launch_s; });
  for (std::size_t i = 0; i < out.matmul.size(); ++i)
    out.matmul[i].seconds = over_rounds([i](const auto& r) { return r.matmul[i].seconds; });
  for (std::size_t i = 0; i < out.kernels.size(); ++i)
    out.kernels[i].seconds = over_rounds([i](const auto& r) { return r.kernels[i].seconds; });
  for (std::size_t i = 0; i < out.copies.size(); ++i)
    out.copies[i].seconds = over_rounds([i](const auto& r) { return r.copies[i].seconds; });
  for (std::size_t i = 0; i < out.collectives.size(); ++i) {
    out.collectives[i].seconds = over_rounds([i](const auto& r) { return r.collectives[i].seconds; });
    for (std::size_t later = 1; later < kRounds; ++later)
      out.collectives[i].wrong += rounds[later].collectives[i].wrong;
  }
  return out;
}

}  // namespace

CalibrationFindings calibrate(const Trial& trial, const Device& device, const parallel::Mesh& mesh,
                              ProgressWriter& progress, RankRecord& record) {
  auto request = calibration_request_from(trial.program);
  if (!request) throw std::invalid_argument(request.error().message);
  request->item_s /= kRounds;
  const auto group = request->group == "tp" ? parallel::Dimension::kTensor : parallel::Dimension::kData;
  std::array<CalibrationFindings, kRounds> rounds;
  for (CalibrationFindings& round : rounds) {
    Calibration calibration(*request, device, progress);
    if (request->machine) calibration.machine();
    if (request->kernels) calibration.kernels();
    if (!request->group.empty()) calibration.group(mesh[group], record);
    round = std::move(calibration.findings);
  }
  return joined(rounds);
}

}  // namespace sweep::rank
