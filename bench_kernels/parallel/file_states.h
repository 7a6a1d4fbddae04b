// FileStates: the optimizer state of every bucket in a file (offload disk): the moments, and the fp32 master where
// there is one, one after the other. It owns the file and brings one bucket at a time into host
// memory; on meta tensors there are the buffers and no file.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/parallel/scratch_file.h"

namespace sweep::parallel {

class FileStates {
 public:
  // parts: the weights of each bucket that this rank updates. masters: in fp32, in host memory; undefined
  // ones: the optimizer updates a copy of the weights themselves.
  FileStates(std::vector<at::Tensor> parts, const std::vector<at::Tensor>& masters, OptimizerKind,
             optim::OptimizerOptions);

  void begin_step() { ++count_; }
  // grad: in host memory, in the type of the master or of the weights.
  void update(std::size_t bucket, const at::Tensor& grad);

 private:
  at::ScalarType updated_type(std::size_t bucket) const;
  std::vector<optim::StateLayout> layout(std::size_t bucket) const;
  at::Tensor read(std::size_t bucket, const optim::StateLayout&, std::int64_t& offset) const;
  void write(const at::Tensor& from, std::int64_t& offset);

  std::vector<at::Tensor> parts_;
  bool masters_ = false;
  OptimizerKind kind_;
  optim::OptimizerOptions options_;
  std::unique_ptr<ScratchFile> file_;  // none on meta tensors
  std::vector<std::int64_t> offsets_;  // one for each bucket
  at::Tensor aid_;
  std::int64_t count_ = 0;
};

}  // namespace sweep::parallel
