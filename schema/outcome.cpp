#include "schema/outcome.h"

#include "schema/names.h"

namespace sweep {
namespace {

constexpr Names<Outcome, 11> kOutcomes{{{Outcome::kOk, "ok"},
                                        {Outcome::kOom, "oom"},
                                        {Outcome::kHang, "hang"},
                                        {Outcome::kTimeout, "timeout"},
                                        {Outcome::kCrash, "crash"},
                                        {Outcome::kInvalid, "invalid"},
                                        {Outcome::kNodeLost, "node_lost"},
                                        {Outcome::kUnsupported, "unsupported"},
                                        {Outcome::kCancelled, "cancelled"},
                                        {Outcome::kPruned, "pruned"},
                                        {Outcome::kFailedUnknown, "failed_unknown"}}};
constexpr Names<OomKind, 2> kOomKinds{{{OomKind::kDevice, "device"}, {OomKind::kHost, "host"}}};
constexpr Names<EndCause, 9> kEndCauses{{{EndCause::kDone, "done"},
                                         {EndCause::kRankFailed, "rank_failed"},
                                         {EndCause::kHang, "hang"},
                                         {EndCause::kTimeout, "timeout"},
                                         {EndCause::kCancelled, "cancelled"},
                                         {EndCause::kAgentStopping, "agent_stopping"},
                                         {EndCause::kStartFailed, "start_failed"},
                                         {EndCause::kNodeLost, "node_lost"},
                                         {EndCause::kNoTime, "no_time"}}};
constexpr Names<RankStart, 2> kRankStarts{{{RankStart::kZygote, "zygote"}, {RankStart::kExec, "exec"}}};
constexpr Names<State, 5> kStates{{{State::kPending, "pending"},
                                   {State::kPosted, "posted"},
                                   {State::kRunning, "running"},
                                   {State::kFinished, "finished"},
                                   {State::kRetired, "retired"}}};

}  // namespace

std::string_view to_string(Outcome o) {
  return name_of(kOutcomes, o);
}
std::string_view to_string(OomKind k) {
  return name_of(kOomKinds, k);
}
std::string_view to_string(State s) {
  return name_of(kStates, s);
}
std::string_view to_string(EndCause c) {
  return name_of(kEndCauses, c);
}
std::string_view to_string(RankStart s) {
  return name_of(kRankStarts, s);
}
std::optional<Outcome> outcome_from(std::string_view word) {
  return value_of(kOutcomes, word);
}
std::optional<OomKind> oom_kind_from(std::string_view word) {
  return value_of(kOomKinds, word);
}
std::optional<EndCause> end_cause_from(std::string_view word) {
  return value_of(kEndCauses, word);
}
std::optional<RankStart> rank_start_from(std::string_view word) {
  return value_of(kRankStarts, word);
}

bool is_infrastructure(Outcome o) {
  return o == Outcome::kNodeLost || o == Outcome::kCancelled;
}

bool is_always_final(Outcome o) {
  return is_answer(o) || o == Outcome::kInvalid || o == Outcome::kFailedUnknown;
}

bool is_answer(Outcome o) {
  return o == Outcome::kOk || o == Outcome::kOom || o == Outcome::kUnsupported || o == Outcome::kPruned;
}

}  // namespace sweep
