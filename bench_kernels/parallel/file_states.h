// FileStates: the optimizer state of every bucket in a file (offload disk and disk_parameters): the moments, and the fp32
// master where there is one, one after the other. It owns the file. While a bucket is updated, that of the bucket
// before goes to the file and that of the one after comes (Rajbhandari et al. 2021, arXiv 2104.07857, section 6.3), so
// host memory holds the states of three; on meta tensors there are the buffers and no file.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "bench_kernels/optim/optimizer.h"
#include "bench_kernels/parallel/disk_queue.h"
#include "bench_kernels/parallel/scratch_file.h"

namespace sweep::parallel {

class FileStates {
 public:
  // parts: the weights of each bucket that this rank updates. masters: in fp32, in host memory; undefined
  // ones: the optimizer updates a copy of the weights themselves.
  FileStates(std::vector<at::Tensor> parts, const std::vector<at::Tensor>& masters, OptimizerKind,
             optim::OptimizerOptions);

  // Whether an update reads the weights; else it only writes them.
  bool reads_parts() const { return !masters_; }
  void begin_step();
  // grad: in host memory, in the type of the master or of the weights. The buckets of a step come in order.
  void update(std::size_t bucket, const at::Tensor& grad);

 private:
  // What of a bucket is in host memory: moments, then the master; undefined where the layout has none.
  struct Held {
    std::vector<at::Tensor> tensors;
    DiskQueue::Job job = 0;  // the last that reads or writes them
  };
  at::ScalarType updated_type(std::size_t bucket) const;
  std::vector<optim::StateLayout> layout(std::size_t bucket) const;
  void fetch(std::size_t bucket);
  void send_back(std::size_t bucket);
  void free_written(std::size_t bucket);

  std::vector<at::Tensor> parts_;
  bool masters_ = false;
  OptimizerKind kind_;
  optim::OptimizerOptions options_;
  std::unique_ptr<ScratchFile> file_;  // none on meta tensors
  std::vector<std::int64_t> offsets_;  // one for each bucket
  at::Tensor aid_;
  std::int64_t count_ = 0;
  std::vector<Held> held_;            // one for each bucket
  std::unique_ptr<DiskQueue> queue_;  // goes first: it reads and writes what is above
};

}  // namespace sweep::parallel
