// Counters of this process, as SWEEP_PHANTOM_COUNTERS asks for them: a JSON file written when the process
// ends, and on the signal that SWEEP_PHANTOM_COUNTERS_SIGNAL names.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace sweep::phantom {

enum class Kind : int {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kRecv,
  kCount
};
const char* name_of(Kind kind);

struct Counters {
  std::atomic<std::uint64_t> launches, matmuls, graph_launches, host_syncs, event_queries, memcpys,
      memcpy_bytes, memsets, mallocs, frees, malloc_failures, pinned_bytes, peak_pinned_bytes;
  std::atomic<std::uint64_t> told_launches, told_bytes;  // kernels that told what they move
  std::atomic<std::uint64_t> collectives[static_cast<int>(Kind::kCount)],
      collective_bytes[static_cast<int>(Kind::kCount)];
  // Time of all kernels; of those in the kernel table; of those scaled from a shape in it.
  std::atomic<std::int64_t> kernel_ns, tabled_ns, scaled_ns;
  std::atomic<std::int64_t> host_ns, device_ns;     // modelled clocks
  std::atomic<std::int64_t> host_work_ns, busy_ns;  // host time of the calls alone; time the GPU had work
  std::atomic<std::uint64_t> held_bytes, peak_held_bytes;  // device memory of this process, contexts too
  std::atomic<int> rank, device;                           // -1: not known
  std::atomic<const char*> not_answered;                   // the last call that was refused; null: none
};

Counters& counters();
int rank_of_process();
// A file's name in which %p and %r stand for the process id and the rank.
std::string file_of_process(const char* pattern);

// Says and remembers that a call is refused because phantom GPUs do not answer it. `name` is a literal.
void refuse(const char* name);

// Writes the file; only calls that a signal handler may make.
void write_counters();

}  // namespace sweep::phantom
