#include <ATen/ops/empty.h>

#include <utility>

#include "bench_kernels/comm/group.h"
#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::comm {
namespace {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Copies what arrived in host memory to the device when it is waited for, on the waiting thread.
class StagedWork final : public c10d::Work {
 public:
  StagedWork(WorkPtr inner, at::Tensor device, at::Tensor host)
      : inner_(std::move(inner)), device_(std::move(device)), host_(std::move(host)) {}
  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  void synchronize() override { wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override {
    const bool done = inner_->wait(timeout);
    if (device_.defined()) device_.copy_(host_.view_as(device_));
    device_.reset();
    host_.reset();
    return done;
  }

 private:
  WorkPtr inner_;
  at::Tensor device_, host_;  // undefined: nothing comes back
};

class StagedBackend final : public c10d::Backend {
 public:
  explicit StagedBackend(BackendPtr inner)
      : Backend(inner->getRank(), inner->getSize()), inner_(std::move(inner)) {}
  const std::string getBackendName() const override { return inner_->getBackendName(); }

  WorkPtr allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    std::vector<at::Tensor> host{there(tensors[0])};
    return back(inner_->allreduce(host, options), tensors[0], host[0]);
  }
  WorkPtr broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    std::vector<at::Tensor> host{there(tensors[0])};
    return back(inner_->broadcast(host, options), tensors[0], host[0]);
  }
  WorkPtr _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override {
    at::Tensor from = there(in), to = room(out);
    return back(inner_->_allgather_base(to, from, options), out, to);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                               const c10d::ReduceScatterOptions& options) override {
    at::Tensor from = there(in), to = room(out);
    return back(inner_->_reduce_scatter_base(to, from, options), out, to);
  }
  WorkPtr alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<std::int64_t>& out_splits,
                        std::vector<std::int64_t>& in_splits, const c10d::AllToAllOptions& options) override {
    at::Tensor from = there(in), to = room(out);
    return back(inner_->alltoall_base(to, from, out_splits, in_splits, options), out, to);
  }
  WorkPtr send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    std::vector<at::Tensor> host{there(tensors[0])};
    return back(inner_->send(host, to, tag), {}, host[0]);
  }
  WorkPtr recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    std::vector<at::Tensor> host{room(tensors[0])};
    return back(inner_->recv(host, from, tag), tensors[0], host[0]);
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override { return inner_->barrier(options); }
  void abort() override { inner_->abort(); }

 private:
  // A copy of a tensor in host memory; the copy waits for the device.
  static at::Tensor there(const at::Tensor& device) {
    at::Tensor host = room(device);
    host.copy_(device);
    return host;
  }
  static at::Tensor room(const at::Tensor& like) {
    const memory::HostScope host;
    return at::empty(like.sizes(), like.options().device(at::kCPU));
  }
  static WorkPtr back(WorkPtr inner, const at::Tensor& device, const at::Tensor& host) {
    return c10::make_intrusive<StagedWork>(std::move(inner), device, host);
  }

  BackendPtr inner_;
};

}  // namespace

BackendPtr make_staged(BackendPtr inner) {
  return c10::make_intrusive<StagedBackend>(std::move(inner));
}

}  // namespace sweep::comm
