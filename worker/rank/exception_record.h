// The only place that turns an exception into the outcome that a rank records. It decides by types and codes,
// never by message.
#pragma once

#include "schema/records.h"
#include "worker/rank/library_status.h"

namespace sweep::rank {

// Facts that a rank on a GPU knows beside the exception. Default: a rank without a GPU.
struct FailureFacts {
  bool on_gpu = false;
  bool driver_answers = false;  // false: an error of the GPU sticks
  i64 free_bytes = 0;           // free bytes of the device, by the driver
  bool cublas = true;           // a cuBLAS handle is there or can be made
  LibraryStatus status;
  bool memory_scarce() const;  // less is free than a library needs to begin its work
};

// REQUIRES: called inside a catch block. Sets outcome, oom_kind, oom_asked_bytes (where the exception carries
// it), consequential and message of the record from the exception being handled:
//   c10::OutOfMemoryError       oom (device)
//   memory::HostMemoryRefused, std::bad_alloc   oom (host)
//   c10::AcceleratorError       oom (device) for the driver's code of a refused allocation, else crash
//   c10::NotImplementedError    unsupported
//   c10::DistError              oom (device) where NCCL failed in CUDA and memory is scarce; crash where NCCL was called
//                               wrongly or its GPU is broken; else crash, consequential: a peer ended, aborted or is late
//   any other c10::Error        oom (device) where cuBLAS had no memory, or failed in a kernel while memory is scarce;
//                               else crash
//   anything else               crash
void record_exception(RankRecord&, const FailureFacts& = {});

}  // namespace sweep::rank
