#include "bench_kernels/kernels/counting_allocator.h"

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_set>
#include <utility>

#include "bench_kernels/kernels/block_events.h"

namespace sweep::memory {
namespace {

constexpr std::int64_t kGranule = 512;  // the CUDA caching allocator's smallest block
constexpr std::size_t kNumber = 16;     // the largest block that holds one number
constexpr std::size_t kAlignment = 64;  // LibTorch's CPU kernels expect this
constexpr std::int64_t kNoCap = INT64_MAX;

// The kind of memory that a block stands for. Numbers the library wraps (at most 16 bytes) are scratch on any
// device.
enum class Tag : std::uint8_t { kDevice, kScratch, kHost };
thread_local int scratch_depth = 0, host_depth = 0;
thread_local bool counted_thread = false;
std::atomic<bool> only_counted_threads{false};
Tag tag_of(std::size_t bytes) {
  if (scratch_depth > 0 || bytes <= kNumber) return Tag::kScratch;
  if (only_counted_threads.load(std::memory_order_relaxed) && !counted_thread) return Tag::kScratch;
  return host_depth > 0 ? Tag::kHost : Tag::kDevice;
}

struct Counters {
  std::atomic<std::int64_t> current{0}, peak{0}, ooms{0}, asked{0}, cap{kNoCap};
  std::atomic<std::int64_t> host_current{0}, host_peak{0};
  std::atomic<std::uint32_t> epoch{0};
  BlockEvents* trace = nullptr;  // events of the BlockTrace that is active
};

// Stands in front of the bytes of a CPU block; alone on kMeta.
struct alignas(kAlignment) Header {
  Counters* counters;
  std::int64_t bytes;
  std::uint32_t epoch;
  Tag tag;
};
static_assert(sizeof(Header) == kAlignment);

void raise_peak(std::atomic<std::int64_t>& peak, std::int64_t now) {
  std::int64_t before = peak.load(std::memory_order_relaxed);
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
}

void enter(Counters& counters, Tag tag, std::int64_t rounded, std::size_t asked) {
  if (tag == Tag::kScratch) return;
  if (tag == Tag::kHost)
    return raise_peak(counters.host_peak, counters.host_current.fetch_add(rounded) + rounded);
  const std::int64_t now = counters.current.fetch_add(rounded) + rounded;
  const std::int64_t cap = counters.cap.load(std::memory_order_relaxed);
  if (now > cap) {
    counters.current.fetch_sub(rounded);
    counters.ooms.fetch_add(1);
    counters.asked.store(static_cast<std::int64_t>(asked));
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: asked for ", asked, " bytes with ",
                     now - rounded, " bytes allocated and a cap of ", cap, " bytes");
  }
  raise_peak(counters.peak, now);
}

void withdraw(Counters& counters, Tag tag, std::int64_t rounded) {
  if (tag == Tag::kDevice) counters.current.fetch_sub(rounded);
  if (tag == Tag::kHost) counters.host_current.fetch_sub(rounded);
}

void leave(Header* header) {
  Counters& counters = *header->counters;
  if (counters.trace != nullptr && header->tag == Tag::kDevice) counters.trace->freed(header);
  if (header->epoch == counters.epoch.load(std::memory_order_relaxed))
    withdraw(counters, header->tag, header->bytes);
  std::free(header);
}

// Some kernels ask for raw memory, which must be its own context: so a CPU block's context is its data, on
// kMeta the header.
void free_data(void* data) {
  if (data == nullptr) return;  // a raw block of no bytes: oneDNN frees those too
  leave(static_cast<Header*>(data) - 1);
}
void free_header(void* header) {
  leave(static_cast<Header*>(header));
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::DeviceType type) : type_(type) {}

  c10::DataPtr allocate(std::size_t n) override {
    if (n == 0) return {nullptr, c10::Device(type_)};
    const std::int64_t rounded = (static_cast<std::int64_t>(n) + kGranule - 1) / kGranule * kGranule;
    const Tag tag = tag_of(n);
    enter(counters, tag, rounded, n);
    void* memory = nullptr;
    const bool has_data = type_ == c10::DeviceType::CPU;
    if (posix_memalign(&memory, kAlignment, sizeof(Header) + (has_data ? n : 0)) != 0) {
      withdraw(counters, tag, rounded);
      throw std::bad_alloc();
    }
    auto* header =
        new (memory) Header{&counters, rounded, counters.epoch.load(std::memory_order_relaxed), tag};
    if (counters.trace != nullptr && tag == Tag::kDevice) counters.trace->allocated(header, rounded);
    if (has_data) return {header + 1, header + 1, &free_data, c10::Device(type_)};
    return {nullptr, header, &free_header, c10::Device(type_)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return type_ == c10::DeviceType::CPU ? &free_data : nullptr;
  }

  void copy_data(void* to, const void* from, std::size_t n) const override {
    if (to != nullptr && from != nullptr) std::memcpy(to, from, n);
  }

  Counters counters;

 private:
  c10::DeviceType type_;
};

// Never destroyed: blocks may outlive main's statics.
CountingAllocator& allocator_of(c10::DeviceType type) {
  static auto* cpu = new CountingAllocator(c10::DeviceType::CPU);
  static auto* meta = new CountingAllocator(c10::DeviceType::Meta);
  TORCH_CHECK(type == c10::DeviceType::CPU || type == c10::DeviceType::Meta,
              "the counting allocator stands in for kCPU and kMeta only, not ", c10::DeviceTypeName(type));
  return type == c10::DeviceType::CPU ? *cpu : *meta;
}

}  // namespace

void install(c10::DeviceType type) {
  c10::SetAllocator(type, &allocator_of(type), /*priority=*/100);
}

Stats stats(c10::DeviceType type) {
  const Counters& counters = allocator_of(type).counters;
  return {
      counters.current.load(),      counters.peak.load(),     counters.ooms.load(), counters.asked.load(), 0,
      counters.host_current.load(), counters.host_peak.load()};
}

void reset_peak(c10::DeviceType type) {
  Counters& counters = allocator_of(type).counters;
  counters.peak.store(counters.current.load());
  counters.host_peak.store(counters.host_current.load());
}

void set_cap(c10::DeviceType type, std::optional<std::int64_t> bytes) {
  allocator_of(type).counters.cap.store(bytes.value_or(kNoCap));
}

void start_clean(c10::DeviceType type) {
  Counters& counters = allocator_of(type).counters;
  counters.epoch.fetch_add(1);
  counters.current = 0;
  counters.peak = 0;
  counters.host_current = 0;
  counters.host_peak = 0;
  counters.ooms = 0;
  counters.asked = 0;
  counters.cap = kNoCap;
}

void count_this_thread_only() {
  counted_thread = true;
  only_counted_threads.store(true);
}

BlockTrace::BlockTrace(c10::DeviceType type) : type_(type) {
  allocator_of(type_).counters.trace = new BlockEvents;
}
BlockTrace::~BlockTrace() {
  delete std::exchange(allocator_of(type_).counters.trace, nullptr);
}
void BlockTrace::mark() {
  allocator_of(type_).counters.trace->mark();
}
std::vector<LiveBlocks> BlockTrace::at_peak() const {
  return allocator_of(type_).counters.trace->at_peak();
}

std::int64_t BlockTrace::bytes_at_peak(const std::vector<at::Tensor>& tensors) const {
  std::unordered_set<const void*> blocks;
  for (const at::Tensor& t : tensors) {
    const auto* context = static_cast<const Header*>(t.storage().data_ptr().get_context());
    blocks.insert(t.is_meta() ? context : context - 1);
  }
  return allocator_of(type_).counters.trace->bytes_at_peak(blocks);
}

CachingUse BlockTrace::through_caching(std::int64_t library, std::int64_t limit) const {
  return allocator_of(type_).counters.trace->through_caching(library, limit);
}

ScratchScope::ScratchScope() {
  ++scratch_depth;
}
ScratchScope::~ScratchScope() {
  --scratch_depth;
}

HostScope::HostScope() {
  ++host_depth;
}
HostScope::~HostScope() {
  --host_depth;
}

namespace {

// Whatever the driver says about pinned memory, it is the host's: the device's is not asked for.
at::Tensor empty_pinned(at::IntArrayRef sizes, const at::TensorOptions& of) {
  try {
    return at::empty(sizes, of.device(at::kCPU).pinned_memory(true));
  } catch (const c10::AcceleratorError& error) {
    constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation
    if (error.get_error_code() != kMemoryAllocation) throw;
    throw HostMemoryRefused(c10::multiply_integers(sizes) * static_cast<std::int64_t>(of.dtype().itemsize()));
  }
}

}  // namespace

at::Tensor empty_on_host(at::IntArrayRef sizes, const at::TensorOptions& of) {
  const bool stands_in = of.device().is_cpu() || of.device().is_meta();
  if (!stands_in) return empty_pinned(sizes, of);
  const HostScope host;
  return at::empty(sizes, of);
}

}  // namespace sweep::memory
