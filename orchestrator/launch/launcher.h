// A Launcher obtains an Allocation (nodes with one agent each), carries its mailbox bytes and says what
// became of it. It knows nothing of SQLite, of what ranks compute, or of what a record means. REQUIRES: used
// from the run loop's executor only; events are delivered there, and never after the destructor returned.
// Every requested or adopted allocation ends in exactly one Ended.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "schema/attempt.h"
#include "schema/expected.h"

namespace boost::asio {
class io_context;
}

namespace sweep::launch {

using AllocationId = std::string;

struct AllocationRequest {
  AllocationId id;              // also the spool folder's name
  std::filesystem::path spool;  // made by the caller's store step before this call; absolute
  i64 incarnation = 1;
  i64 nodes = 1;
  i64 slots = 1;                    // CPU ranks or GPUs a node may hold at once
  std::uint64_t outbox_offset = 0;  // read from here on
};

struct Started {
  AllocationId id;
  std::string where;
  i64 pid = 0;
};  // pid, Slurm job id, host list
struct Outbox {
  AllocationId id;
  std::uint64_t offset = 0;
  std::string bytes;
};  // bytes found at offset
struct Ended {
  AllocationId id;
  std::string reason;
  bool lost = false;
};  // finished, cancelled, lost, refused
using Event = std::variant<Started, Outbox, Ended>;

class Launcher {
 public:
  using Sink = std::function<void(const Event&)>;
  virtual ~Launcher() = default;
  virtual Expected<void> request(const AllocationRequest&) = 0;
  virtual Expected<i64> post_attempt(const AllocationId&,
                                     const Attempt&) = 0;  // the inbox line's sequence number
  virtual Expected<void> post_cancel(const AllocationId&, i64 attempt) = 0;
  virtual Expected<void> finish(const AllocationId&,
                                bool now) = 0;  // no more attempts; now: end the running ones
  virtual void kill(const AllocationId&) = 0;   // at once; still nothing left behind
  // The offset that has been ingested and committed; the next Outbox starts here.
  virtual void acknowledge(const AllocationId&, std::uint64_t offset) = 0;
};

struct LocalOptions {
  std::filesystem::path agent;  // sweep-agent; empty: beside this program
  std::filesystem::path rank;   // sweep-rank (or a fake one in tests); empty: beside this program
  bool allow_zygote = true;
  bool allow_namespace = true;  // a PID namespace for the agent where the system allows it
};
// The agent is a child of the calling process, started in a session of its own. The destructor ends every
// agent that still runs, at once and with all its ranks, and waits for it.
std::unique_ptr<Launcher> make_local(boost::asio::io_context&, LocalOptions, Launcher::Sink);

}  // namespace sweep::launch
