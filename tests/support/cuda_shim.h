// CUDA's words for the host's compiler, enough for bench_kernels/kernels/device: a fiber for each CUDA thread
// (one thread of the system runs them in turn), barriers for a block and a warp, shuffles, shared memory of
// exactly the size that was asked for. Two blocks are in flight at once. The thread sanitizer is told which
// fiber runs and what the barriers order, and nothing else: it finds every race between threads and blocks,
// whatever their turns are.
#pragma once
#include <ucontext.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <vector>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#define __device__

// swapcontext() asks the system for the signal mask, which is most of a launch's time; the sanitizers know no other way.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SWEEP_SHIM_JUMPS 0
#else
#define SWEEP_SHIM_JUMPS 1
#endif

namespace shim {

template <class To, class From>
To bits_to(From from) {
  return std::bit_cast<To>(from);
}

struct Dim {
  unsigned x = 0;
};

// How often all of its members have come; it orders what they did before and do after.
class Barrier {
 public:
  explicit Barrier(unsigned members) : members_(members) {}
  unsigned long turn() const { return turn_.load(std::memory_order_relaxed); }
  void arrive() {
    order_before();
    if (come_.fetch_add(1, std::memory_order_relaxed) + 1 < members_) return;
    come_.store(0, std::memory_order_relaxed);
    turn_.fetch_add(1, std::memory_order_relaxed);
  }
#ifdef __SANITIZE_THREAD__
  void order_before() {
    __tsan_release(this);
  }
  void order_after() {
    __tsan_acquire(this);
  }
#else
  void order_before() {}
  void order_after() {}
#endif

 private:
  unsigned members_;
  std::atomic<unsigned> come_{0};
  std::atomic<unsigned long> turn_{0};
};

// State that the threads of a block share.
struct Block {
  Block(unsigned threads, std::size_t shared_bytes)
      : all(threads), lanes(2 * threads), shared(new (std::align_val_t(16)) std::byte[shared_bytes]) {
    for (unsigned w = 0; w < threads; w += 32) warps.push_back(std::make_unique<Barrier>(32));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { ::operator delete[](shared, std::align_val_t(16)); }

  Barrier all;
  std::vector<std::unique_ptr<Barrier>> warps;
  std::vector<double> lanes;  // what each thread gives to a shuffle: of even ones, then of odd ones
  std::byte* shared;
};

struct Fiber {
  static constexpr std::size_t kStack = 64 << 10;
  Block* block = nullptr;
  Dim thread, index, threads, blocks;
  ucontext_t context{};
#if SWEEP_SHIM_JUMPS
  jmp_buf place;  // where it goes on, once it has begun
  bool begun = false;
#endif
  std::atomic<Barrier*> waits{nullptr};
  std::atomic<unsigned long> turn{0};
  std::atomic<bool> done{false};
  unsigned shuffles = 0;
  void* sanitizer = nullptr;
};

// One launch under way: its fibers and the context that they return to.
class Launch {
 public:
  using Body = std::function<void(std::byte* shared)>;
  Launch(unsigned blocks, unsigned threads, std::size_t shared_bytes, Body body)
      : body_(std::move(body)), shared_bytes_(shared_bytes) {
    current_launch = this;
#ifdef __SANITIZE_THREAD__
    home_sanitizer_ = __tsan_get_current_fiber();
#endif
    for (unsigned place = 0; place < kSideBySide && place < blocks; ++place) {
      places_.push_back(std::make_unique<Block>(threads, shared_bytes));
      for (unsigned thread = 0; thread < threads; ++thread) add({place}, thread, threads, blocks);
    }
  }
  void run();

  static inline std::atomic<Fiber*> current{nullptr};
  static inline std::atomic<Launch*> current_launch{nullptr};

  // The fiber at work waits until all members of the barrier have come.
  static void wait(Barrier& barrier) {
    Fiber& fiber = *current.load(std::memory_order_relaxed);
    const unsigned long turn = barrier.turn();
    barrier.arrive();
    if (barrier.turn() == turn) {
      fiber.turn.store(turn, std::memory_order_relaxed);
      fiber.waits.store(&barrier, std::memory_order_relaxed);
      leave(fiber);
    }
    barrier.order_after();
  }

 private:
  static constexpr unsigned kSideBySide = 2;
  void add(Dim place, unsigned thread, unsigned threads, unsigned blocks);
  static void enter();
  static void leave(Fiber& fiber);
  void resume(Fiber& fiber);

  // Kept from launch to launch: they are dear to make.
  static inline std::vector<std::unique_ptr<char[]>> stacks_;
  static inline std::vector<void*> sanitizers_;
  Body body_;
  std::size_t shared_bytes_;
  std::vector<std::unique_ptr<Block>> places_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
#if SWEEP_SHIM_JUMPS
  static inline jmp_buf home_;
#else
  static inline ucontext_t home_{};
#endif
  static inline std::atomic<void*> home_sanitizer_{nullptr};  // read by fibers that have ended their work
  Barrier begin_{~0u}, end_{~0u};
};

inline void Launch::add(Dim place, unsigned thread, unsigned threads, unsigned blocks) {
  Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
  fiber.block = places_[place.x].get();
  fiber.thread.x = thread, fiber.index = place, fiber.threads.x = threads, fiber.blocks.x = blocks;
  getcontext(&fiber.context);
  if (stacks_.size() < fibers_.size()) stacks_.emplace_back(new char[Fiber::kStack]);
  fiber.context.uc_stack.ss_sp = stacks_[fibers_.size() - 1].get();
  fiber.context.uc_stack.ss_size = Fiber::kStack;
  makecontext(&fiber.context, &Launch::enter, 0);
#ifdef __SANITIZE_THREAD__
  while (sanitizers_.size() < fibers_.size()) sanitizers_.push_back(__tsan_create_fiber(0));
  fiber.sanitizer = sanitizers_[fibers_.size() - 1];
#endif
}

// Every block of this fiber's place, one after another. Shared memory begins as NaNs.
inline void Launch::enter() {
  Launch& launch = *current_launch.load(std::memory_order_relaxed);
  launch.begin_.order_after();
  Fiber& fiber = *current.load(std::memory_order_relaxed);
  for (; fiber.index.x < fiber.blocks.x; fiber.index.x += kSideBySide) {
    if (fiber.thread.x == 0) std::memset(fiber.block->shared, 0xff, launch.shared_bytes_);
    wait(fiber.block->all);
    launch.body_(fiber.block->shared);
    wait(fiber.block->all);
  }
  fiber.done.store(true, std::memory_order_relaxed);
  launch.end_.order_before();
  leave(fiber);
}

inline void Launch::leave(Fiber& fiber) {
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(home_sanitizer_.load(std::memory_order_relaxed), __tsan_switch_to_fiber_no_sync);
#endif
#if SWEEP_SHIM_JUMPS
  if (_setjmp(fiber.place) == 0) _longjmp(home_, 1);
#else
  swapcontext(&fiber.context, &home_);
#endif
}

inline void Launch::resume(Fiber& fiber) {
  fiber.waits.store(nullptr, std::memory_order_relaxed);
  current.store(&fiber, std::memory_order_relaxed);
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(fiber.sanitizer, __tsan_switch_to_fiber_no_sync);
#endif
#if SWEEP_SHIM_JUMPS
  if (_setjmp(home_) != 0) return;
  if (fiber.begun) _longjmp(fiber.place, 1);
  fiber.begun = true;
  setcontext(&fiber.context);
#else
  swapcontext(&home_, &fiber.context);
#endif
}

inline void Launch::run() {
  begin_.order_before();
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& fiber : fibers_) {
      const Barrier* const waits = fiber->waits.load(std::memory_order_relaxed);
      if (fiber->done.load(std::memory_order_relaxed)) continue;
      if (waits != nullptr && waits->turn() == fiber->turn.load(std::memory_order_relaxed)) continue;
      resume(*fiber);
      moved = true;
    }
  }
  end_.order_after();
  for (const auto& fiber : fibers_) {
    if (!fiber->done.load(std::memory_order_relaxed)) {
      std::fprintf(stderr, "a barrier is met by some threads of a block and not by others\n");
      std::abort();
    }
  }
}

// body(shared memory) by each thread of each block.
inline void launch(unsigned blocks, unsigned threads, std::size_t shared_bytes, Launch::Body body) {
  Launch(blocks, threads, shared_bytes, std::move(body)).run();
}
inline Fiber& here() {
  return *Launch::current.load(std::memory_order_relaxed);
}

}  // namespace shim

#define threadIdx (shim::here().thread)
#define blockIdx (shim::here().index)
#define blockDim (shim::here().threads)
#define gridDim (shim::here().blocks)

inline void __syncthreads() {
  shim::Launch::wait(shim::here().block->all);
}
// One barrier is enough: a thread writes into the same half of the lanes again after the next shuffle's barrier, which
// the others reach when they have read.
template <class A>
A __shfl_xor_sync(unsigned, A x, int offset) {
  shim::Fiber& fiber = shim::here();
  shim::Block& block = *fiber.block;
  double* const lanes = block.lanes.data() + (fiber.shuffles++ % 2 == 0 ? 0 : fiber.threads.x);
  lanes[fiber.thread.x] = x;
  shim::Launch::wait(*block.warps[fiber.thread.x / 32]);
  return static_cast<A>(lanes[fiber.thread.x ^ static_cast<unsigned>(offset)]);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
template <class A>
A rsqrt(A x) {
  return A(1) / std::sqrt(x);
}
