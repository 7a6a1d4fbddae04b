// The heartbeat page of a rank: a small file the agent maps and reads while the rank writes it. Torn reads
// are harmless: each member is one aligned atomic word.
#pragma once
#include <atomic>
#include <cstdint>

namespace sweep {

enum class Phase : std::uint32_t {
  kStart = 0,
  kInit = 1,
  kBuild = 2,
  kFirstStep = 3,
  kWarmup = 4,
  kStep = 5,
  kReport = 6,
  kDone = 7
};
enum class Part : std::uint32_t {
  kNone = 0,
  kForward = 1,
  kBackward = 2,
  kOptimizer = 3,
  kCommunication = 4
};

inline constexpr std::uint64_t kProgressMagic = 0x5357454550303031ull;  // "SWEEP001"

struct ProgressPage {
  std::atomic<std::uint64_t> magic{0};
  std::atomic<std::uint32_t> phase{0};  // Phase
  std::atomic<std::uint32_t> part{0};   // Part
  std::atomic<std::uint64_t> step{0};   // steps begun, warm-up included
  std::atomic<std::uint64_t> beats{0};  // grows at every change; the watchdog compares it with its last look
  std::atomic<std::uint64_t> collective{0};  // collectives entered
  std::atomic<std::uint64_t> collective_done{0};
};
static_assert(sizeof(ProgressPage) == 48 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace sweep
