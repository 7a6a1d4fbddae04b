#include "bench_kernels/parallel/bucketed_sync.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace sweep::parallel {
namespace {

constexpr std::int64_t kViewAlignment =
    64;  // bytes: vector loads and fused optimizers like aligned gradients

class BucketedGradientSync final : public GradientSync {
 public:
  BucketedGradientSync(BackendPtr backend, std::int64_t bucket_bytes, ProgressPage* progress)
      : backend_(std::move(backend)), bucket_bytes_(bucket_bytes), progress_(progress) {}

  ~BucketedGradientSync() override {
    for (const auto& parameter : parameters_)
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
  }

  void attach(const std::vector<at::Tensor>& params) override;
  void set_last_micro_step(bool last) override { last_micro_step_ = last; }
  void finish() override;
  std::int64_t exposed_wait_ns() const override { return exposed_wait_ns_; }

 private:
  struct Parameter {
    at::Tensor tensor, view;
    std::size_t bucket = 0;
    bool seen = false;  // its gradient of this step's last micro-step is in the bucket
  };
  struct Bucket {
    std::vector<std::size_t> members;
    std::int64_t elements = 0;
    at::Tensor flat;
    std::size_t missing = 0;
    c10::intrusive_ptr<c10d::Work> work;
  };
  struct Hook final : torch::autograd::PostAccumulateGradHook {
    Hook(BucketedGradientSync* sync, std::size_t index) : sync(sync), index(index) {}
    void operator()(const at::Tensor&) override { sync->accumulated(index); }
    BucketedGradientSync* sync;
    std::size_t index;
  };

  void assign_buckets();
  void gather_gradient(Parameter&);
  void accumulated(std::size_t index);
  void launch_ready();
  void launch(Bucket&);

  BackendPtr backend_;
  std::int64_t bucket_bytes_;
  ProgressPage* progress_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  std::size_t next_to_launch_ = 0;
  bool last_micro_step_ = true;
  std::int64_t exposed_wait_ns_ = 0;
};

std::int64_t aligned_elements(const at::Tensor& tensor) {
  const auto unit = kViewAlignment / static_cast<std::int64_t>(tensor.element_size());
  return (tensor.numel() + unit - 1) / unit * unit;
}

void BucketedGradientSync::assign_buckets() {
  std::map<c10::ScalarType, std::size_t> open;  // one bucket holds one type
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    Parameter& parameter = parameters_[i];
    const auto type = parameter.tensor.scalar_type();
    const std::int64_t elements = aligned_elements(parameter.tensor);
    const auto width = static_cast<std::int64_t>(parameter.tensor.element_size());
    auto found = open.find(type);
    if (found == open.end() || (buckets_[found->second].elements + elements) * width > bucket_bytes_) {
      found = open.insert_or_assign(type, buckets_.size()).first;
      buckets_.emplace_back();
    }
    parameter.bucket = found->second;
    Bucket& bucket = buckets_[found->second];
    bucket.members.push_back(i);
    bucket.elements += elements;
  }
}

void BucketedGradientSync::attach(const std::vector<at::Tensor>& params) {
  TORCH_CHECK(parameters_.empty(), "attach() is called once");
  for (const auto& tensor : params) parameters_.push_back({tensor, {}});
  assign_buckets();
  for (Bucket& bucket : buckets_) {
    const at::Tensor& first = parameters_[bucket.members[0]].tensor;
    bucket.flat = at::zeros({bucket.elements}, first.options().requires_grad(false));
    bucket.missing = bucket.members.size();
    std::int64_t offset = 0;
    // Buckets fill from the last parameter on, but inside one the order is the parameters' own: what is
    // stacked in the model (q, k, v) stays adjacent, so one product can write all of it.
    std::sort(bucket.members.begin(), bucket.members.end());
    for (const std::size_t i : bucket.members) {
      Parameter& parameter = parameters_[i];
      parameter.view = bucket.flat.narrow(0, offset, parameter.tensor.numel()).view(parameter.tensor.sizes());
      offset += aligned_elements(parameter.tensor);
      parameter.tensor.mutable_grad() = parameter.view;
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i].tensor, std::make_unique<Hook>(this, i));
  }
}

// After this the parameter's gradient is its view into the bucket. A gradient that autograd has just made is
// copied and freed; later micro-steps accumulate into the view itself.
void BucketedGradientSync::gather_gradient(Parameter& parameter) {
  const at::NoGradGuard no_grad;
  at::Tensor& grad = parameter.tensor.mutable_grad();
  if (!grad.defined()) {
    parameter.view.zero_();
  } else if (grad.is_alias_of(parameter.view)) {
    return;
  } else {
    parameter.view.copy_(grad);
  }
  grad = parameter.view;
}

void BucketedGradientSync::accumulated(std::size_t index) {
  Parameter& parameter = parameters_[index];
  gather_gradient(parameter);
  if (!last_micro_step_ || parameter.seen) return;
  parameter.seen = true;
  --buckets_[parameter.bucket].missing;
  launch_ready();
}

void BucketedGradientSync::launch_ready() {
  while (next_to_launch_ < buckets_.size() && buckets_[next_to_launch_].missing == 0)
    launch(buckets_[next_to_launch_++]);
}

void BucketedGradientSync::launch(Bucket& bucket) {
  if (progress_ != nullptr) {
    progress_->collective.fetch_add(1, std::memory_order_relaxed);
    progress_->beats.fetch_add(1, std::memory_order_relaxed);
  }
  std::vector<at::Tensor> tensors{bucket.flat};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::AVG;
  bucket.work = backend_->allreduce(tensors, options);
}

void BucketedGradientSync::finish() {
  const auto start = std::chrono::steady_clock::now();
  for (; next_to_launch_ < buckets_.size(); ++next_to_launch_) {
    Bucket& bucket = buckets_[next_to_launch_];
    for (const std::size_t i : bucket.members)
      gather_gradient(parameters_[i]);  // of parameters the loss did not reach
    launch(bucket);
  }
  for (Bucket& bucket : buckets_) {
    wait(*bucket.work);
    bucket.work.reset();
    bucket.missing = bucket.members.size();
    if (progress_ != nullptr) {
      progress_->collective_done.fetch_add(1, std::memory_order_relaxed);
      progress_->beats.fetch_add(1, std::memory_order_relaxed);
    }
  }
  for (Parameter& parameter : parameters_) parameter.seen = false;
  next_to_launch_ = 0;
  const auto waited = std::chrono::steady_clock::now() - start;
  exposed_wait_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count();
}

}  // namespace

std::unique_ptr<GradientSync> make_bucketed_sync(BackendPtr backend, std::int64_t bucket_bytes,
                                                 ProgressPage* progress) {
  return std::make_unique<BucketedGradientSync>(std::move(backend), bucket_bytes, progress);
}

}  // namespace sweep::parallel
