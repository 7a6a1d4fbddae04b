// AttemptRun: this node's part of one attempt, from its folder to its AttemptEnd: starts the ranks, watches
// them, gives the peers of a failed rank time to write their records, ends what does not end, checks that
// nothing is left, and sends the records. It never computes. REQUIRES: used on the event loop only;
// `finished` is called exactly once, and must not destroy the AttemptRun.
//
// clang-format off
//
//   starting -> running -> asking or awaiting records -> terminating -> sweeping -> finished   (any of them may be skipped)
//
// clang-format on
// Its parts: RankProcesses (processes, signals), AttemptReport (what is reported), Watchdog (hangs).
#pragma once
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "schema/node_part.h"
#include "schema/records.h"
#include "worker/agent/evidence/node_watch.h"
#include "worker/agent/evidence/processor_clock.h"
#include "worker/agent/evidence/watchdog.h"
#include "worker/agent/net/interface.h"
#include "worker/agent/node/attempt_report.h"
#include "worker/agent/node/rank_processes.h"
#include "worker/agent/options.h"
#include "worker/agent/process/sandbox.h"
#include "worker/agent/process/zygote.h"

namespace sweep::agent {

// The services of the node that runs an attempt.
class AttemptHost : public MessageSink {
 public:
  // No other attempt runs on the node.
  virtual bool alone() const = 0;
  // A child that belongs to no attempt.
  virtual bool spared(pid_t pid) const = 0;
  // Takes the ends of children that are due. May call exited() of any attempt of the node.
  virtual void reap() = 0;
  // The status of a child that ended before its pid was known.
  virtual std::optional<int> claim(pid_t pid) = 0;
};

// The context that all attempts of a node share.
struct AttemptContext {
  boost::asio::io_context& io;
  const Options& options;
  const SandboxInfo& inside;
  Zygote& zygote;
  NodeWatch& node;
  AttemptHost& host;
  // Options::key()
  std::string key;
  std::filesystem::path rendezvous_root;
  // The address of an agent among several for the ranks of other nodes.
  Endpoint here;
};

// Ends every process with the attempt's mark, and where it is alone on the node every other child that
// belongs to nothing. Those that it found, for people; empty: nothing is left.
std::vector<std::string> kill_leftovers(const AttemptContext&, i64 attempt);

// An instant of the steady clock that may not be set.
class Deadline {
 public:
  void set(double seconds) {
    constexpr double kLongest = 1e7;
    at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(std::min(seconds, kLongest)));
  }
  void clear() { at_.reset(); }
  bool over() const { return at_ && Clock::now() >= *at_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> at_;
};

class AttemptRun {
 public:
  AttemptRun(AttemptContext& context, NodePart part, std::function<void(AttemptRun&)> finished);
  ~AttemptRun();

  void start();
  // Told of every child that was reaped; true: it was one of this attempt's.
  bool exited(pid_t pid, int status);
  // at_once: without the grace period.
  void end(EndCause cause, bool at_once);
  // The part of another node is in trouble: as when a rank of this one failed, or ended with evidence.
  void peer_ended(EndCause cause);
  // The ranks of every node run: from here on a silent one is waited for in vain.
  void peers_started() { peers_started_ = true; }
  void store_answer(i64 client, const Frame&);
  const Attempt& attempt() const { return part_.attempt; }
  bool starting() const { return stage_ == Stage::kStarting; }

 private:
  enum class Stage { kStarting, kRunning, kAsking, kAwaitingRecords, kTerminating, kSweeping, kFinished };
  // An attempt whose zygote failed starts again, once, by exec.
  struct Restart {
    bool zygote_failed = false, done = false;
  };

  Expected<void> prepare();
  void launch(std::size_t index, bool by_zygote);
  void launched(std::size_t index, const Expected<pid_t>& pid);
  void all_answered();
  void arm();
  void watch();
  // The one place where the stage moves on by itself.
  void advance();
  void ask_ranks(EndCause cause, const std::string& why, std::optional<i64> rank);
  void give_up();
  void await_records();
  void terminate();
  void sweep();

  AttemptContext& context_;
  const NodePart part_;
  std::function<void(AttemptRun&)> finished_;
  AttemptResources resources_;
  Watchdog watchdog_;
  ProcessorClock processor_clock_;
  // The ranks of the other nodes have started, or there are no other nodes.
  bool peers_started_;
  boost::asio::steady_timer timer_;
  RankProcesses ranks_;
  Stage stage_ = Stage::kStarting;
  Deadline deadline_;
  AttemptReport report_;
  Restart restart_;
  bool unfit_ = false;  // ranks cannot be started on this node
};

}  // namespace sweep::agent
