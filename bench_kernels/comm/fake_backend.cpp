#include "bench_kernels/comm/group.h"

namespace sweep::comm {
namespace {

// Keeps its tensors until waited for, as every backend here does, so that a dry run sees the same lifetimes.
class FakeWork final : public c10d::Work {
 public:
  explicit FakeWork(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  void synchronize() override { tensors_.clear(); }
  bool wait(std::chrono::milliseconds) override {
    tensors_.clear();
    return true;
  }

 private:
  std::vector<at::Tensor> tensors_;
};

class FakeBackend final : public c10d::Backend {
 public:
  using Backend::Backend;
  const std::string getBackendName() const override { return "fake"; }

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return keep(tensors);
  }
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    return keep(tensors);
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) override {
    return keep({output, input});
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions&) override {
    return keep({output, input});
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>&,
                        std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    return keep({output, input});
  }
  WorkPtr send(std::vector<at::Tensor>& tensors, int, int) override { return keep(tensors); }
  WorkPtr recv(std::vector<at::Tensor>& tensors, int, int) override { return keep(tensors); }
  WorkPtr barrier(const c10d::BarrierOptions&) override { return keep({}); }

 private:
  static WorkPtr keep(std::vector<at::Tensor> tensors) {
    return c10::make_intrusive<FakeWork>(std::move(tensors));
  }
};

}  // namespace

BackendPtr make_fake(int rank, int world) {
  return c10::make_intrusive<FakeBackend>(rank, world);
}

}  // namespace sweep::comm
