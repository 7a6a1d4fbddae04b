// The counting allocator: an allocator for kCPU or kMeta that counts live bytes as a GPU's caching allocator
// would (blocks rounded up to 512 B), keeps their peak, and refuses with c10::OutOfMemoryError above a cap.
// It owns no memory policy: bytes come from the allocator it wraps, and on kMeta there are none at all.
//
// Blocks allocated inside a ScratchScope are tagged scratch (casts around a matmul, kernel work space): they
// are neither counted nor capped, because the device this stands for would not hold them. Blocks allocated
// inside a HostScope stand for (pinned) host memory: offloaded state. They are counted apart and never
// capped. So are all blocks of other threads once count_this_thread_only() was called.
// Blocks of at most 16 bytes are scratch too: the library wraps each number of an expression (x.mul_(0.5)) in
// a CPU tensor, whatever the device.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <cstdint>
#include <new>
#include <optional>
#include <vector>

namespace sweep::memory {

// Replaces the allocator of the device type for the whole process. REQUIRES: before the first tensor whose
// bytes shall be counted; kCPU or kMeta. Installing twice is harmless.
void install(c10::DeviceType);

struct Stats {
  std::int64_t current = 0;  // bytes of live device blocks
  std::int64_t peak = 0;     // their high-water mark since the last reset_peak()
  std::int64_t ooms = 0;     // allocations refused at the cap
  std::int64_t asked = 0;    // size in bytes of the last one refused, as asked (not rounded)
  std::int64_t retries = 0;  // a caching allocator's flush-and-retry; this one has nothing to flush: always 0
  std::int64_t host_current = 0;  // bytes of live host blocks
  std::int64_t host_peak = 0;     // their high-water mark since the last reset_peak()
};

Stats stats(c10::DeviceType);
void reset_peak(c10::DeviceType);
// Bytes that live device blocks may take together; nullopt: no cap.
void set_cap(c10::DeviceType, std::optional<std::int64_t>);
// Forgets everything counted so far: blocks that live now stay uncounted, also when they are freed later; no
// cap. What a forked rank calls first (its parent's blocks are not its own), and a rank started by exec after
// the same warm-up.
void start_clean(c10::DeviceType);

// From now on blocks that other threads allocate are scratch, for the whole process: a communication library
// copies on threads of its own, and no GPU would hold those copies at a moment of that thread's choosing.
void count_this_thread_only();

// Device blocks of one size that lived at the highest point of a trace. Lasting: allocated before the last
// mark() ahead of that point.
struct LiveBlocks {
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  bool lasting = false;
};

// How a sequence of blocks fares in CUDA's caching allocator (caching_model.h). Unit: bytes, but for retries.
struct CachingUse {
  std::int64_t peak_reserved = 0;
  std::int64_t retries = 0;
  std::int64_t refused = 0;                  // the block that no room was left for; 0: all fit
  std::int64_t allocated = 0, reserved = 0;  // counts at the end, or when the block was refused
};

// RAII: keeps what is allocated and freed on the device type while it lives. REQUIRES: one thread allocates
// there, and one trace at a time.
class BlockTrace {
 public:
  explicit BlockTrace(c10::DeviceType);
  ~BlockTrace();
  BlockTrace(const BlockTrace&) = delete;
  BlockTrace& operator=(const BlockTrace&) = delete;

  void mark();                              // a step begins
  std::vector<LiveBlocks> at_peak() const;  // largest total first
  // Bytes of those tensors that were there at the highest point. REQUIRES: they live.
  std::int64_t bytes_at_peak(const std::vector<at::Tensor>&) const;
  // The trace through a caching allocator that may reserve `limit` bytes, with `library` bytes that a library
  // takes at its first use, in the first step.
  CachingUse through_caching(std::int64_t library, std::int64_t limit) const;

 private:
  c10::DeviceType type_;
};

// RAII, per thread, may nest: blocks allocated by this thread while one lives are tagged scratch for their
// whole life.
class ScratchScope {
 public:
  ScratchScope();
  ~ScratchScope();
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;
};

// Tags blocks as host memory, the way ScratchScope tags scratch; a ScratchScope inside wins.
class HostScope {
 public:
  HostScope();
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;
};

// Host memory that the system or the driver refused, with the size asked for.
class HostMemoryRefused : public std::bad_alloc {
 public:
  explicit HostMemoryRefused(std::int64_t asked) : asked_(asked) {}
  const char* what() const noexcept override { return "host memory was refused"; }
  std::int64_t asked() const { return asked_; }

 private:
  std::int64_t asked_;
};

// An uninitialised tensor of that size and type in host memory, for what is offloaded from `of`'s device: on
// CUDA pinned, so that copies run beside the computation (throws HostMemoryRefused where the driver has no
// more); on CPU and meta a block tagged host.
at::Tensor empty_on_host(at::IntArrayRef sizes, const at::TensorOptions& of);

}  // namespace sweep::memory
