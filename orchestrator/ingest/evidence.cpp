#include "orchestrator/ingest/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/utf8.h"
#include "orchestrator/ingest/program_facts.h"
#include "schema/codec.h"
#include "schema/xid.h"

namespace sweep::ingest {
namespace {

constexpr std::size_t kLogTailBytes = 8192;
constexpr std::size_t kMessageBytes = 2000;
constexpr std::size_t kLongestPart = 40;
constexpr std::size_t kLastLineBytes = 400;
constexpr std::size_t kNameBytes = 200;
// An agent's evidence as JSON text, as far as it is evaluated and kept.
constexpr std::size_t kEvidenceBytes = 1u << 20;
// Nats by which rounding moves a loss of any size.
constexpr double kLeastRise = 0.01;

std::string bounded(const std::string& text, std::size_t bytes) {
  return text.size() <= bytes ? text : text.substr(0, bytes) + "...";
}

std::string tail(const std::string& text) {
  return text.size() <= kLogTailBytes ? text : "..." + text.substr(text.size() - kLogTailBytes);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

struct StepLoss {
  double sum = 0;
  i64 ranks = 0;
  double mean() const { return sum / static_cast<double>(ranks); }
};
// The losses by repeat and step.
using Losses = std::map<i64, std::map<i64, StepLoss>>;

std::optional<Cause> gather(const AttemptReports& t, i64 world, Losses& losses) {
  for (const auto& [rank, record] : t.records) {
    if (rank < 0 || rank >= world) continue;
    for (const auto& sample : record.samples) {
      if (!std::isfinite(sample.loss)) {
        Cause cause{Outcome::kInvalid, rank, 0, Phase::kStep, "", {}, {}, false, {}};
        cause.what =
            fmt::format("had a loss that is not finite in step {} of repeat {}", sample.step, sample.repeat);
        return cause;
      }
      StepLoss& at = losses[sample.repeat][sample.step];
      at.sum += sample.loss, ++at.ranks;
    }
  }
  return std::nullopt;
}

Cause invalid(std::string what) {
  return {Outcome::kInvalid, {}, 0, Phase::kStep, std::move(what), {}, {}, false, {}};
}

// A program without a timed step that ended as if all was well. Where its allocator found no memory, it went on after each
// such error.
Cause untimed(const Attempt& attempt, const ProgramFacts& facts) {
  if (!facts.out_of_memory) return invalid(without_timings(attempt, facts));
  Cause cause = invalid(
      "ran out of device memory and went on, so that no step was timed (errors that its allocator counted)");
  cause.outcome = Outcome::kOom, cause.oom_kind = OomKind::kDevice, cause.rank = facts.out_of_memory;
  return cause;
}

bool is_command(const Attempt& attempt) {
  return attempt.trial.workload == Workload::kCommand;
}

// An agent's evidence with its leading ranks, as many as the limit leaves room for. No agent writes a megabyte beside
// its ranks: nothing is kept of such evidence.
AgentEvidence within_limit(const AgentEvidence& all) {
  AgentEvidence out = all;
  out.ranks.clear();
  std::size_t bytes = to_text(out).size();
  if (bytes > kEvidenceBytes) return {};
  for (const RankPosition& rank : all.ranks) {
    bytes += to_text(rank).size() + 1;  // a comma
    if (bytes > kEvidenceBytes) break;
    out.ranks.push_back(rank);
  }
  return out;
}

void add_end(Evidence& out, const AttemptEnd& end, Outcome outcome) {
  out.cause = end.cause;
  if (!end.clean) out.cleanup_failure = bounded(end.cleanup_failure, kMessageBytes);
  for (const GpuError& error : end.gpu_errors) out.gpu_errors.push_back(describe_gpu_error(error));
  AgentEvidence said = within_limit(end.evidence);
  out.unreadable_records = said.unreadable_records;
  if (end.cause == EndCause::kRankFailed) {
    // The positions of the others when the first one failed.
    if (outcome == Outcome::kCrash) out.ranks = std::move(said.ranks);
  } else if (said != AgentEvidence()) {
    out.hang = std::move(said);
  }
}

}  // namespace

std::string describe_record(const RankRecord& r) {
  const std::string asked =
      r.oom_asked_bytes ? fmt::format(" (asked for {})", human_bytes(static_cast<double>(*r.oom_asked_bytes)))
                        : "";
  std::string what;
  if (r.outcome == Outcome::kOom)
    what = fmt::format("ran out of {} memory{}{}", r.oom_kind == OomKind::kHost ? "host" : "device",
                       r.part.empty() ? "" : " in " + bounded(r.part, kLongestPart), asked);
  else if (r.outcome == Outcome::kUnsupported)
    what = "cannot run this configuration";
  else if (r.outcome == Outcome::kInvalid)
    what = "found its numbers invalid";
  else
    what = r.consequential ? "lost its peers" : "failed";
  if (!r.message.empty()) what += ": " + bounded(r.message, kMessageBytes);
  return what;
}

std::string last_line(std::string_view log) {
  const auto end = log.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  log = log.substr(0, end + 1);
  const auto begin = log.find_last_of("\r\n");
  const auto line = begin == std::string_view::npos ? log : log.substr(begin + 1);
  return safe_text(bounded(std::string(line), kLastLineBytes));
}

std::string describe_exit(const RankExit& e) {
  if (e.oom_killed) return "was killed by the kernel or cgroup for host memory";
  std::string how = "ended";
  if (e.signal)
    how = fmt::format("was ended by {}", signal_name(*e.signal));
  else if (e.exit_code)
    how = fmt::format("exited with code {}", *e.exit_code);
  const std::string words = last_line(e.log_tail);
  return how + " and left no record" + (words.empty() ? "" : "; its log ends with: " + words);
}

std::string describe_gpu_error(const GpuError& error) {
  const std::string rank = error.rank ? fmt::format(" (rank {})", *error.rank) : "";
  const auto meaning = meaning_of_xid(error.xid);
  return fmt::format("GPU {} of {}{} reported Xid {}{}{}", bounded(error.gpu, kNameBytes),
                     bounded(error.host, kNameBytes), rank, error.xid, meaning.empty() ? "" : ": ", meaning);
}

std::string sentence(const Cause& cause) {
  const std::string phase = cause.phase ? fmt::format(" (in phase {})", to_string(*cause.phase)) : "";
  // The agent's reason names the rank itself.
  const bool by_agent = cause.outcome == Outcome::kHang || cause.outcome == Outcome::kTimeout ||
                        cause.outcome == Outcome::kNodeLost;
  if (!cause.rank || by_agent) return cause.what + phase;
  return fmt::format("rank {} {}{}", *cause.rank, cause.what, phase);
}

AgentReason agent_reason(const AttemptEnd& end) {
  const AgentEvidence said = within_limit(end.evidence);
  AgentReason reason{bounded(said.why, kMessageBytes), said.rank, {}};
  const auto found = standstill(said.ranks);
  if (found && found->rank) reason.rank = found->rank;
  for (const RankPosition& each : said.ranks)
    if (each.rank == reason.rank) reason.phase = phase_from(each.phase);
  if (!found) return reason;
  reason.why = found->what + (reason.why.empty() ? "" : ". " + reason.why);
  reason.rank = found->rank;
  return reason;
}

std::optional<Cause> check_losses(const Attempt& attempt, const AttemptReports& t) {
  if (is_command(attempt))
    if (const ProgramFacts facts = program_facts(attempt, t); facts.timed_ranks == 0)
      return untimed(attempt, facts);
  Losses losses;
  if (auto bad = gather(t, attempt.trial.world(), losses)) return bad;
  if (is_command(attempt)) return std::nullopt;  // its batches differ from step to step, and so may the loss
  if (losses.empty()) return invalid("every rank reported ok, but no step was recorded");
  // Only the first repeat is judged: later ones continue from its weights, and a loss near zero varies by
  // more than its size.
  const auto& steps = losses.begin()->second;
  const double tolerance = attempt.trial.precision == Precision::kFp32 ? 1e-3 : 1e-2;
  const double first = steps.begin()->second.mean(), last = steps.rbegin()->second.mean();
  if (last <= first + std::max(kLeastRise, tolerance * std::abs(first))) return std::nullopt;
  return invalid(fmt::format("the loss rose from {:.6g} to {:.6g} although the batch repeats", first, last));
}

std::optional<Cause> check_rehearsal(const Attempt& attempt, const AttemptReports& t) {
  const bool phantoms = std::ranges::any_of(
      t.records, [](const auto& each) { return each.second.effective.phantom.has_value(); });
  if (!is_command(attempt) || !phantoms) return std::nullopt;
  const ProgramFacts facts = program_facts(attempt, t);
  const bool says_something = facts.memory || facts.from_log;
  if (facts.timed_ranks > 0 || (says_something && !facts.out_of_memory)) return std::nullopt;
  return untimed(attempt, facts);
}

Evidence evidence(const Attempt& attempt, const AttemptReports& t, const Result& result) {
  Evidence out;
  out.reported = {std::ssize(t.records), std::ssize(t.exits)};
  if (result.phase) out.phase = to_string(*result.phase);
  if (t.end) add_end(out, *t.end, result.outcome);
  if (is_command(attempt)) add_program_evidence(out, attempt, t, result);
  out.cause_rank = result.rank;
  const auto exit = result.rank ? t.exits.find(*result.rank) : t.exits.end();
  if (exit == t.exits.end()) return out;
  out.log_tail = tail(exit->second.log_tail);
  if (exit->second.signal) out.signal = signal_name(*exit->second.signal);
  // A rank that left a record of its failure may have ended in order.
  if (exit->second.exit_code.value_or(0) != 0) out.exit_code = exit->second.exit_code;
  return out;
}

}  // namespace sweep::ingest
