#include "bench_kernels/comm/time_collective.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

namespace sweep::comm {
namespace {

// Bytes of an fp32; values repeat, so that their sums are exact.
constexpr std::int64_t kElement = 4, kPeriod = 13;
constexpr double kMostCalls = 1000;

using Clock = std::chrono::steady_clock;

double since(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

// The buffers of one collective, and what they must hold before and after it. Rank r's element i is i mod 13
// + r + 1.
class Exercise {
 public:
  Exercise(Channel& group, Kind kind, std::int64_t bytes, c10::Device device)
      : group_(group), kind_(kind), n_(group.size()), me_(group.rank()) {
    const std::int64_t whole = std::max<std::int64_t>(bytes / kElement / n_, 1) * n_;
    const auto floats = at::TensorOptions(device).dtype(at::kFloat);
    pattern_ = at::arange(whole, at::TensorOptions(device).dtype(at::kInt)).remainder(kPeriod).to(at::kFloat);
    part_ = whole / n_;
    in_ = at::empty({kind == Kind::kAllGather ? part_ : whole}, floats);
    if (kind != Kind::kAllReduce) out_ = at::empty({kind == Kind::kReduceScatter ? part_ : whole}, floats);
  }

  std::int64_t bytes() const { return pattern_.numel() * kElement; }
  void fill() {
    in_.copy_(pattern_.narrow(0, 0, in_.numel())).add_(static_cast<float>(me_ + 1));
    if (out_.defined()) out_.zero_();
  }
  void run() {
    switch (kind_) {
      case Kind::kAllReduce:
        return group_.all_reduce(in_).wait();
      case Kind::kAllGather:
        return group_.all_gather(in_, out_).wait();
      case Kind::kReduceScatter:
        return group_.reduce_scatter(in_, out_).wait();
      case Kind::kAllToAll:
        return group_.all_to_all(in_, out_).wait();
      default:
        return group_.shift(in_, out_).wait();
    }
  }
  std::int64_t wrong() const {
    const at::Tensor& got = out_.defined() ? out_ : in_;
    return got.ne(expected()).sum().item<std::int64_t>();
  }

 private:
  at::Tensor part(std::int64_t index) const { return pattern_.narrow(0, index * part_, part_); }
  at::Tensor expected() const {
    const auto n = static_cast<float>(n_);
    const float ranks = n * (n + 1) / 2;
    if (kind_ == Kind::kAllReduce) return pattern_ * n + ranks;
    if (kind_ == Kind::kReduceScatter) return part(me_) * n + ranks;
    if (kind_ == Kind::kSend) return pattern_ + static_cast<float>((me_ + n_ - 1) % n_ + 1);
    std::vector<at::Tensor> parts;  // each rank's first part, or the part that it has for this rank
    for (std::int64_t r = 0; r < n_; ++r)
      parts.push_back(part(kind_ == Kind::kAllGather ? 0 : me_) + static_cast<float>(r + 1));
    return at::cat(parts);
  }

  Channel& group_;
  Kind kind_;
  std::int64_t n_, me_, part_ = 0;
  at::Tensor pattern_, in_, out_;
};

// The same number on every rank: the largest.
double agree(Channel& group, double mine, c10::Device device) {
  const at::Tensor value =
      at::full({1}, static_cast<float>(mine), at::TensorOptions(device).dtype(at::kFloat));
  group.all_reduce(value, Channel::Op::kMax).wait();
  return value.item<float>();
}

}  // namespace

CollectiveTiming time_collective(Channel& group, Kind kind, std::int64_t bytes, c10::Device device,
                                 const std::function<void()>& settle, double budget_s) {
  Exercise exercise(group, kind, bytes, device);
  CollectiveTiming out;
  out.bytes = exercise.bytes();
  const auto checked = [&] {
    exercise.fill();
    settle();
    exercise.run();
    settle();
    out.wrong += exercise.wrong();
  };
  const auto timed = [&](int calls) {
    group.barrier();
    const auto from = Clock::now();
    for (int i = 0; i < calls; ++i) exercise.run();
    settle();
    return agree(group, since(from) / calls, device);
  };
  checked();
  const double once = std::max(timed(1), 1e-7);
  out.seconds = timed(static_cast<int>(std::clamp(budget_s / once, 1.0, kMostCalls)));
  checked();
  return out;
}

}  // namespace sweep::comm
