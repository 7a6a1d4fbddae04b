// The heartbeat page of a rank: a small file the agent maps and reads while the rank writes it. Torn reads
// are harmless: each member is one aligned atomic word.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sweep {

// The phases of a rank or an attempt, from its start to its end; the last three surround the steps, where a trial asks
// for them.
enum class Phase : std::uint32_t {
  kStart = 0,
  kInit = 1,
  kBuild = 2,
  kFirstStep = 3,
  kWarmup = 4,
  kStep = 5,
  kReport = 6,
  kDone = 7,
  kLoad = 8,
  kEvaluation = 9,
  kCheckpoint = 10
};
enum class Part : std::uint32_t {
  kNone = 0,
  kForward = 1,
  kBackward = 2,
  kOptimizer = 3,
  kCommunication = 4
};

// The operations among ranks. kJoin: they meet, before there is a group.
enum class Collective : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
  kJoin
};
inline constexpr std::size_t kCollectives = 8;
const char* name_of(Collective);
const char* name_of(Part);
std::string_view to_string(Phase);  // "unknown" where a page holds no phase
std::optional<Phase> phase_from(std::string_view);

// One collective by name: kind and number (in its group, from 1) in a word, the group's name in two. Default:
// none.
struct CollectiveName {
  std::uint64_t what = 0;                // number << 8 | kind + 1
  std::array<std::uint64_t, 2> group{};  // up to 16 characters
  static CollectiveName of(Collective, std::uint64_t number, std::string_view group);
  bool none() const { return what == 0; }
  // "reduce_scatter 17 of shard"; "none". Of any bytes: what the page of a dying rank holds is not trusted.
  std::string text() const;
  bool operator==(const CollectiveName&) const = default;
};

// The place of one on a heartbeat page.
class CollectiveSlot {
 public:
  void put(const CollectiveName& name) {
    what_.store(name.what, std::memory_order_relaxed);
    for (std::size_t i = 0; i < group_.size(); ++i) group_[i].store(name.group[i], std::memory_order_relaxed);
  }
  CollectiveName get() const {
    CollectiveName name;
    name.what = what_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < group_.size(); ++i) name.group[i] = group_[i].load(std::memory_order_relaxed);
    return name;
  }

 private:
  std::atomic<std::uint64_t> what_{0};
  std::array<std::atomic<std::uint64_t>, 2> group_{};
};

inline constexpr std::uint64_t kProgressMagic = 0x5357454550303032ull;  // "SWEEP002"

struct ProgressPage {
  std::atomic<std::uint64_t> magic{0};
  std::atomic<std::uint32_t> phase{0};  // Phase
  std::atomic<std::uint32_t> part{0};   // Part
  std::atomic<std::uint64_t> step{0};   // steps begun, warm-up included
  std::atomic<std::uint64_t> beats{0};  // grows at every change; the watchdog compares it with its last look
  std::atomic<std::uint64_t> collective{0};  // collectives entered
  std::atomic<std::uint64_t> collective_done{0};
  CollectiveSlot entered;  // the last one begun
  CollectiveSlot awaited;  // the one it waits for; none: it computes
};
static_assert(sizeof(ProgressPage) == 96 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace sweep
