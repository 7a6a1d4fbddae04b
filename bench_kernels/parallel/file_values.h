// FileValues: the weights of every bucket in a file (offload disk_parameters). It owns the file; host memory holds those of
// a bucket from when they are expected until they are left, or written. On meta tensors there is the memory and no
// file.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench_kernels/parallel/disk_queue.h"
#include "bench_kernels/parallel/scratch_file.h"

namespace sweep::parallel {

class FileValues {
 public:
  // Values for use on that device.
  explicit FileValues(at::Device device) : device_(device) {}
  // The next bucket: its numbers go to the file, its memory back. REQUIRES: a whole tensor in host memory.
  void keep(const at::Tensor& values);

  // Takes memory for a bucket and starts to read; nothing where it is there or on its way. Read: false takes the memory
  // alone, for numbers that are written.
  void expect(std::size_t bucket, bool read = true);
  // Waits for what was expected.
  void arrive(std::size_t bucket);
  bool under_way(std::size_t bucket) const { return states_[bucket].job != 0; }
  // The memory goes.
  void leave(std::size_t bucket);
  // Starts to write the numbers; the memory goes when the next bucket is saved, or with settle().
  void save(std::size_t bucket);
  void settle();

 private:
  struct State {
    at::Tensor values;
    std::int64_t offset = 0;
    bool here = false;
    DiskQueue::Job job = 0;  // the read or write that has not been waited for
  };
  void wait(State&);

  at::Device device_;
  std::unique_ptr<ScratchFile> file_;
  std::vector<State> states_;
  std::int64_t bytes_ = 0;
  std::optional<std::size_t> leaving_;  // saved, and its memory is still there
  std::unique_ptr<DiskQueue> queue_;    // goes first: it reads and writes what is above
};

}  // namespace sweep::parallel
