// The spool of an allocation: the only place that spells its paths, and the framing of its append-only
// mailbox files.
//
//   <spool>/inbox.jsonl               orchestrator -> agent: attempt, finish
//   <spool>/outbox.jsonl              agent -> orchestrator: hello, node, started, rank_record, rank_exit,
//                                     attempt_end, node_out, bye
//   <spool>/agent.log                 the agent's own log
//   <spool>/agent.lock                locked as long as the agent lives; agent.lock.<node>: of a node agent
//   <spool>/contact                   touched by a bridge while an orchestrator is at its other end
//   <spool>/attempts/<id>/attempt_00000.json  what ranks read: one for each node, by the first rank there
//   <spool>/attempts/<id>/rank_00000.json     a rank's own record
//   <spool>/attempts/<id>/rank_00000.log      its stdout and stderr
//   <spool>/attempts/<id>/rank_00000.progress its heartbeat page (progress.h)
//   <spool>/attempts/<id>/rank_00000.nccl     NCCL's own words (NCCL_DEBUG_FILE)
//   <spool>/attempts/<id>/rank_00000.flight   its flight recorder as JSON, asked for when the attempt hung
//   <spool>/attempts/<id>/rank_00000.stacks   where its threads were then, as text; written before the recorder
//
// A line is  <crc32 as 8 hex digits> <space> <JSON object> \n  where the object holds
// {"allocation","incarnation","seq", "kind","body"} and the checksum is over the JSON bytes. Every file has
// exactly one writer. A torn last line (no newline, or a wrong checksum at the very end) is not an error: the
// reader stops before it and the writer, when it reopens the file, cuts it off. A wrong line in the middle is
// reported with its offset and skipped.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::spool {

namespace fs = std::filesystem;

fs::path inbox(const fs::path& spool);
fs::path outbox(const fs::path& spool);
fs::path agent_log(const fs::path& spool);
fs::path agent_lock(const fs::path& spool, i64 node = 0);
fs::path contact(const fs::path& spool);
fs::path attempt_dir(const fs::path& spool, i64 attempt);
i64 attempt_of(const fs::path& attempt_dir);  // the id in the folder's name; 0: none
fs::path attempt_file(const fs::path& attempt_dir, i64 first_rank_of_node = 0);
fs::path rank_record(const fs::path& attempt_dir, i64 rank);
fs::path rank_log(const fs::path& attempt_dir, i64 rank);
fs::path rank_progress(const fs::path& attempt_dir, i64 rank);
fs::path nccl_log(const fs::path& attempt_dir, i64 rank);
fs::path flight_trace(const fs::path& attempt_dir, i64 rank);
fs::path rank_stacks(const fs::path& attempt_dir, i64 rank);
fs::path flight_request(const fs::path& rendezvous_dir,
                        i64 rank);  // a pipe: a byte asks the rank for its trace

struct Line {
  std::string allocation;
  i64 incarnation = 0;
  i64 seq = 0;
  std::string kind;
  nlohmann::json body;
};

// Inbox kinds.
inline constexpr std::string_view kAttempt = "attempt";  // body: Attempt
inline constexpr std::string_view kFinish = "finish";    // body: Finish
// Outbox kinds.
inline constexpr std::string_view kHello = "hello";             // body: AgentHello
inline constexpr std::string_view kNode = "node";               // body: NodeRecord
inline constexpr std::string_view kStarted = "started";         // body: AttemptStarted
inline constexpr std::string_view kRankRecord = "rank_record";  // body: RankRecord
inline constexpr std::string_view kRankExit = "rank_exit";      // body: RankExit
inline constexpr std::string_view kAttemptEnd = "attempt_end";  // body: AttemptEnd
inline constexpr std::string_view kNodeOut = "node_out";        // body: NodeOut
inline constexpr std::string_view kBye = "bye";                 // body: Leave

// Reasons of a bye that say more than words: the scheduler (or a person) ended the allocation, or its time
// was up.
inline constexpr std::string_view kByeSignal = "signal", kByeTimeLimit = "time limit";
enum class ByeCause {
  kOwn,  // the agent's own: no work left, told to finish, something lost
  kSignal,
  kTimeLimit,
};
constexpr ByeCause bye_cause(std::string_view reason) {
  return reason == kByeSignal      ? ByeCause::kSignal
         : reason == kByeTimeLimit ? ByeCause::kTimeLimit
                                   : ByeCause::kOwn;
}

// The line's bytes, newline included.
std::string frame(std::string_view allocation, i64 incarnation, i64 seq, std::string_view kind,
                  const nlohmann::json& body);
inline std::string frame(const Line& line) {
  return frame(line.allocation, line.incarnation, line.seq, line.kind, line.body);
}

struct Parsed {
  std::vector<Line> lines;
  std::uint64_t consumed = 0;       // bytes up to the last whole line; read on from here
  std::vector<std::string> damage;  // one sentence per skipped line: offset and cause
};
// Parses whole lines from the start of bytes; never throws on any input; a line longer than max_line is
// damage.
Parsed parse(std::string_view bytes, std::size_t max_line = 64u << 20);

}  // namespace sweep::spool
