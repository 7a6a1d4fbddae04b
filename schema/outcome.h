// How it ended (Outcome) and where it is (State): two enums with fixed integers and names, never mixed.
#pragma once
#include <optional>
#include <string_view>

namespace sweep {

enum class Outcome {
  kOk = 0,
  kOom = 1,
  kHang = 2,
  kTimeout = 3,
  kCrash = 4,
  kInvalid = 5,
  kNodeLost = 6,
  kUnsupported = 7,
  kCancelled = 8,
  kPruned = 9,
  kFailedUnknown = 10,  // imported rows only
};

enum class OomKind { kDevice = 0, kHost = 1 };

// The progress of a trial or an attempt.
enum class State {
  kPending = 0,   // it is to be run
  kPosted = 1,    // it is in an allocation's inbox
  kRunning = 2,   // ranks were started
  kFinished = 3,  // has a result
  kRetired = 4,   // no longer in the grid
};

// Why an agent ended an attempt.
enum class EndCause {
  kDone = 0,
  kRankFailed = 1,
  kHang = 2,
  kTimeout = 3,
  kCancelled = 4,
  kAgentStopping = 5,
  kStartFailed = 6,
  kNodeLost = 7,
  // It was never started: it would not have ended in time.
  kNoTime = 8,
};

// How a rank's process is made: forked from a process that has loaded its libraries already, or executed
// anew.
enum class RankStart { kZygote = 0, kExec = 1 };

std::string_view to_string(Outcome);
std::string_view to_string(OomKind);
std::string_view to_string(State);
std::string_view to_string(EndCause);
std::string_view to_string(RankStart);
std::optional<Outcome> outcome_from(std::string_view);
std::optional<OomKind> oom_kind_from(std::string_view);
std::optional<EndCause> end_cause_from(std::string_view);
std::optional<RankStart> rank_start_from(std::string_view);

// Final: never run again unless asked. ok, oom, unsupported, pruned, invalid and failed_unknown are; a crash,
// hang or timeout is after its retries; node_lost and cancelled never are.
bool is_always_final(Outcome);
// Answers that count as "has a final answer" for exit code 0: ok, oom, unsupported, pruned.
bool is_answer(Outcome);
// The fault of the machine or of people, not of the configuration: node_lost, cancelled.
bool is_infrastructure(Outcome);

}  // namespace sweep
