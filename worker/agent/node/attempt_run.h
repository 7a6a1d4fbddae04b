// AttemptRun: this node's part of one attempt, from its folder to its AttemptEnd: starts the ranks, watches them, gives
// the peers of a failed rank time to write their records, ends what does not end, checks that nothing is left, and
// sends the records. It never computes. REQUIRES: used on the event loop only; `finished` is called exactly once.
//
//   starting -> running -> asking or awaiting records -> terminating -> sweeping -> finished   (any of them may be skipped)
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "schema/records.h"
#include "worker/agent/evidence/node_watch.h"
#include "worker/agent/evidence/rank_log.h"
#include "worker/agent/evidence/watchdog.h"
#include "worker/agent/net/interface.h"
#include "worker/agent/net/rendezvous_server.h"
#include "worker/agent/node/attempt_files.h"
#include "worker/agent/node/node_part.h"
#include "worker/agent/options.h"
#include "worker/agent/process/sandbox.h"
#include "worker/agent/process/zygote.h"

namespace sweep::agent {

// What an attempt asks of the node that runs it.
class AttemptHost {
 public:
  virtual ~AttemptHost() = default;
  virtual void send(std::string_view kind, nlohmann::json body) = 0;
  // A rank's request to the rendezvous store; AttemptRun::store_answer() brings the answer.
  virtual void ask_store(i64 attempt, i64 client, Frame asked) = 0;
  // No other attempt runs on the node.
  virtual bool alone() const = 0;
  // A child that belongs to no attempt.
  virtual bool spared(pid_t pid) const = 0;
  // Takes the ends of children that are due.
  virtual void reap() = 0;
  // The status of a child that ended before its pid was known.
  virtual std::optional<int> claim(pid_t pid) = 0;
};

// What all attempts of a node share.
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
  // Of an agent among several: its address for the ranks of other nodes.
  Endpoint here;
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
  const Attempt& attempt() const { return attempt_; }
  bool clean() const { return cleanup_failure_.empty(); }
  bool starting() const { return stage_ == Stage::kStarting; }

 private:
  enum class Stage { kStarting, kRunning, kAsking, kAwaitingRecords, kTerminating, kSweeping, kFinished };
  struct Rank {
    pid_t pid = 0;        // 0: not started
    i64 outside_pid = 0;  // as seen from outside the PID namespace
    bool answered = false, ended = false, killed_by_agent = false, oom_killed = false;
    bool asked = false;  // for its flight recorder
    int status = 0;
    i64 ended_unix_ns = 0;
    std::unique_ptr<RankLog> log;
  };
  using Seconds = std::chrono::duration<double>;

  Expected<void> prepare();
  // Ranks are counted from 0 on this node; world_rank() says which of the attempt's each is.
  i64 world_rank(std::size_t index) const { return part_.rank(static_cast<i64>(index)); }
  void launch(i64 index, bool by_zygote);
  void launched(i64 index, const Expected<pid_t>& pid);
  void all_answered();
  void arm();
  void tick();
  void watch();
  void advance();
  // attempt_hang.cpp: ends the attempt for that cause, with what was found and the ranks' flight recorders.
  void ask_ranks(EndCause cause, nlohmann::json found);
  bool answered() const;
  void give_up();
  void add_flight(std::size_t index, nlohmann::json& rank) const;
  std::vector<i64> process_ids() const;
  bool all_ended() const;
  bool failed(const Rank& rank, i64 index) const;
  void terminate();
  void sweep();
  bool may_start_again();
  std::vector<std::string> kill_leftovers();
  void finish();
  void send_records();
  void send_exits();
  std::vector<GpuError> gpu_errors();
  nlohmann::json collect_evidence() const;
  void set_cause(EndCause cause, nlohmann::json evidence = nullptr);
  void set_deadline(double seconds);
  bool past_deadline() const;

  AttemptContext& context_;
  const NodePart part_;
  const Attempt& attempt_;
  std::function<void(AttemptRun&)> finished_;
  std::optional<AttemptFiles> files_;
  std::unique_ptr<RendezvousServer> door_;  // of an attempt that spans nodes
  Watchdog watchdog_;
  bool peers_started_;  // or there are none
  std::optional<NodeWatch::Span> span_;
  boost::asio::steady_timer timer_;
  std::vector<Rank> ranks_;
  Stage stage_ = Stage::kStarting;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  bool zygote_failed_ = false, started_again_ = false;
  pid_t anchor_ = 0;               // leads the process group; 0: gone
  std::optional<EndCause> cause_;  // absent: nothing went wrong yet
  nlohmann::json evidence_;
  struct {
    EndCause cause = EndCause::kHang;
    nlohmann::json found;
  } giving_up_;  // while ranks are asked
  std::string start_error_;
  std::string cleanup_failure_;
  i64 started_unix_ns_ = 0;
};

}  // namespace sweep::agent
