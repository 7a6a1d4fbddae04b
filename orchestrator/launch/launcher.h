// A Launcher obtains an Allocation (nodes with one agent each), carries its mailbox bytes and says what
// became of it. It knows nothing of SQLite, of what ranks compute, or of what a record means. REQUIRES: used
// from the run loop's executor only; events are delivered there, never from inside a call and never after the
// destructor returned.
// Every requested or adopted allocation ends in exactly one Ended. An allocation that can outlive the process
// that asked for it (a Slurm job) is left alone by the destructor: the next run adopts it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/expected.h"
#include "schema/attempt.h"

namespace boost::asio {
class io_context;
}

namespace sweep::launch {

using AllocationId = std::string;

// Does what it is given, if this process may still run the sweep, and lets no other process take the sweep
// over meanwhile; otherwise refuses (kRefused: another process runs it). Every line of an inbox and every order to
// end an allocation that others can adopt goes through it.
using Fence = std::function<Expected<void>(const std::function<Expected<void>()>&)>;

struct AllocationRequest {
  AllocationId id;              // also the spool folder's name
  std::filesystem::path spool;  // made by the caller's store step before this call; absolute
  i64 incarnation = 1;
  i64 nodes = 1;
  i64 slots = 1;                     // CPU ranks or GPUs a node may hold at once
  std::uint64_t outbox_offset = 0;   // read from here on
  std::string hardware = "cpu";      // catalogue name
  i64 gpus = 0;                      // GPUs of each node; 0: none
  i64 ranks_per_node = 1;            // the most ranks a node of its trials
  double seconds = 3600;             // time that its trials need, with slack; a scheduler ends it then
  std::vector<std::string> avoid{};  // hosts that get no more work
  Fence fence{};                     // the launcher's own; empty: no other process can run the sweep
};

struct Started {
  AllocationId id;
  std::string where;
  i64 pid = 0;                           // pid, Slurm job id
  std::optional<double> seconds_left{};  // seconds until it is ended; nullopt: it has no limit
  double held_s = 0;                     // so long already: of an adopted one
  std::vector<std::string> hosts{};      // names by node, as in `avoid`; empty: the agents' own names hold
};
struct Outbox {
  AllocationId id;
  std::uint64_t offset = 0;
  std::string bytes;
};  // bytes found at offset
struct Ended {
  AllocationId id;
  std::string reason;  // finished, cancelled, lost, refused
  bool lost = false;
  bool preempted = false;  // preempted, cancelled from outside, out of time: what it left uses up no retry
  std::string host{};      // it was lost by this one, as `avoid` would name it; empty: it is not known
};
// Worth telling people: why it waits, that the scheduler does not answer.
struct Notice {
  AllocationId id;
  std::string text;
};
// Hosts of a kind where they are given by name instead of waited for in a queue.
struct Room {
  i64 now = 0;   // hosts that no allocation has
  i64 ever = 0;  // most at any time, with those that one has
};
using Event = std::variant<Started, Outbox, Ended, Notice>;

class Launcher {
 public:
  using Sink = std::function<void(const Event&)>;
  virtual ~Launcher() = default;
  // The fence of what is requested and adopted from now on.
  void use_fence(Fence fence) { fence_ = std::move(fence); }
  virtual Expected<void> request(const AllocationRequest&) = 0;
  // Takes over an allocation that an earlier process requested, where it can outlive that process: what was
  // asked for then; Started and Ended follow as if it had been requested now. nullopt: it cannot, or it was
  // never asked for; its caller closes it.
  virtual Expected<std::optional<AllocationRequest>> adopt(const AllocationId& id,
                                                           const std::filesystem::path& spool,
                                                           i64 incarnation, std::uint64_t outbox_offset) {
    (void)id, (void)spool, (void)incarnation, (void)outbox_offset;
    return std::optional<AllocationRequest>();
  }
  // The room for further requests beside `avoid`. nullopt: a scheduler finds the nodes.
  virtual std::optional<Room> room(const std::string& hardware, const std::vector<std::string>& avoid) const {
    (void)hardware, (void)avoid;
    return std::nullopt;
  }
  // Nodes of a scheduler that stand idle for trials of this hardware, beyond what has been asked for already;
  // 0: none, or it is not known.
  virtual i64 idle_nodes(const std::string& hardware) const {
    (void)hardware;
    return 0;
  }
  virtual Expected<i64> post_attempt(const AllocationId&,
                                     const Attempt&) = 0;  // the inbox line's sequence number
  virtual Expected<void> finish(const AllocationId&,
                                bool now) = 0;  // no more attempts; now: end the running ones
  virtual void kill(const AllocationId&) = 0;   // ends it at once; still nothing is left behind
  // The offset that has been ingested and committed; the next Outbox starts here.
  virtual void acknowledge(const AllocationId&, std::uint64_t offset) = 0;

 protected:
  AllocationRequest fenced(AllocationRequest request) const {
    request.fence = fence_;
    return request;
  }

 private:
  Fence fence_;
};

}  // namespace sweep::launch
