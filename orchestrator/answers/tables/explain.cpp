#include "orchestrator/answers/tables/explain.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/tables/tables.h"
#include "schema/codec.h"
#include "schema/labels.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kLabel = 11;  // columns of the label at the left
constexpr std::size_t kEvidenceLines = 20, kStackLines = 30;

class Lines {
 public:
  explicit Lines(std::size_t width) : width_(width) {}
  void add(std::string_view label, const std::string& text) {
    const std::string line = fmt::format("{:<{}}{}", label, kLabel, text);
    out_ += (width_ == 0 ? line : fit(line, width_)) + "\n";
  }
  // Long sentences are wrapped at blanks, never cut.
  void wrapped(std::string_view label, std::string_view text) {
    std::string rest = safe_text(text);
    const std::size_t room = width_ > kLabel + 20 ? width_ - kLabel : std::string::npos;
    while (display_width(rest) > room) {
      auto cut = rest.rfind(' ', room);
      if (cut == std::string::npos || cut == 0) break;
      out_ += fmt::format("{:<{}}{}\n", label, kLabel, rest.substr(0, cut));
      rest.erase(0, cut + 1);
      label = "";
    }
    out_ += fmt::format("{:<{}}{}\n", label, kLabel, rest);
  }
  std::string take() { return std::move(out_); }

 private:
  std::size_t width_;
  std::string out_;
};

// Every axis that is not at its default, as key=value.
std::string configuration(const Trial& trial) {
  ResultRow row;
  row.trial = trial;
  std::string out = fmt::format("model={}", safe_text(trial.model));
  const auto labels = label_members(trial.labels);
  for (const auto& [name, value] : labels.items())  // a grid's own axes, and what it derives
    if (is_label_name(name))
      out += fmt::format(" {}={}", safe_text(name),
                         safe_text(value.is_string() ? value.get<std::string>() : value.dump()));
  for (const Column& c : columns()) {
    if (c.role != Role::kAxis || c.key == "model") continue;
    const Value value = c.get(row);
    if (value.index() == 0 || value == c.default_value) continue;
    out += fmt::format(" {}={}", c.key,
                       c.type == "flag" ? (std::get<i64>(value) != 0 ? "true" : "false") : show(value));
  }
  return out;
}

std::string bytes(i64 n) {
  const Scale scale = scale_for("bytes", static_cast<double>(n));
  return fmt::format("{} {}", scale(static_cast<double>(n)), scale.unit);
}

std::string predicted(const Prediction& p) {
  std::vector<std::string> parts;
  if (p.bytes) parts.push_back(bytes(*p.bytes) + " on the fullest rank");
  if (p.step_ms) parts.push_back(significant(*p.step_ms) + " ms a step");
  if (p.seconds) parts.push_back(duration(*p.seconds) + " in all");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string outcome_of(const Result& r) {
  std::string out(to_string(r.outcome));
  if (r.oom_kind) out += fmt::format(" ({})", to_string(*r.oom_kind));
  if (r.rank) out += fmt::format(", first at rank {}", *r.rank);
  if (r.phase) out += fmt::format(", in {}", to_string(*r.phase));
  if (r.metrics.oom_part) out += fmt::format(" ({})", safe_text(*r.metrics.oom_part));
  return out;
}

// The traffic of a rank in a step, by strategy.
std::string sent_by(const Metrics& m) {
  struct Sent {
    const char* strategy;
    const std::optional<i64>& bytes_sent;
    const std::optional<i64>& calls;
  };
  const Sent all[] = {{"dp", m.sent_bytes_dp, m.calls_dp},
                      {"tp", m.sent_bytes_tp, m.calls_tp},
                      {"pp", m.sent_bytes_pp, m.calls_pp},
                      {"cp", m.sent_bytes_cp, m.calls_cp},
                      {"ep", m.sent_bytes_ep, m.calls_ep}};
  std::vector<std::string> parts;
  for (const Sent& s : all)
    if (s.bytes_sent && s.calls)
      parts.push_back(fmt::format("{} {} in {} calls", s.strategy, bytes(*s.bytes_sent), *s.calls));
  return parts.empty() ? "" : fmt::format("a rank sends in a step: {}", fmt::join(parts, ", "));
}

// The peak of an attempt that did not end ok is what it had reached: nothing to hold a prediction against.
void add_metrics(Lines& lines, const Metrics& metrics, bool ended_ok) {
  ResultRow row;
  row.metrics = metrics;
  std::vector<std::string> parts;
  for (const std::string& key : TableOptions{}.metrics) {
    const Column* c = find_column(key);
    const auto value = number(c->get(row));
    if (!value || (key.starts_with("useful_") && !has_padding(metrics))) continue;
    const Scale scale = scale_for(c->unit, *value);
    parts.push_back(fmt::format("{} {}{}{}", key, scale(*value), scale.unit.empty() ? "" : " ", scale.unit));
  }
  if (ended_ok && metrics.peak_allocated_bytes && metrics.predicted_bytes && *metrics.predicted_bytes > 0) {
    const double ratio =
        static_cast<double>(*metrics.peak_allocated_bytes) / static_cast<double>(*metrics.predicted_bytes);
    parts.push_back(fmt::format("peak {} of the prediction", significant(ratio)));
  }
  if (!parts.empty()) lines.wrapped("", fmt::format("{}", fmt::join(parts, ", ")));
  if (const std::string sent = sent_by(metrics); !sent.empty()) lines.wrapped("", sent);
  std::string guessed = guessed_line(std::array{metrics.step_guessed_share});
  if (!guessed.empty()) guessed.pop_back(), lines.wrapped("", guessed);
}

// The position of a rank when its attempt was given up.
std::string rank_line(const RankPosition& rank) {
  std::string out =
      fmt::format("rank {}: phase {}, part {}, step {}, {} of {} collectives done, last {}", rank.rank,
                  safe_text(rank.phase), safe_text(rank.part), rank.step, rank.collectives_done,
                  rank.collectives_entered, safe_text(rank.last_collective));
  if (!rank.waits_for.empty()) out += ", waits for " + safe_text(rank.waits_for);
  if (!rank.alive) out += "; process gone";
  return out;
}

void add_stacks(Lines& lines, const Evidence& evidence) {
  const auto stacks = deciding_stacks(evidence);
  if (!stacks) return;
  std::string_view text = stacks->text;
  for (std::size_t printed = 0; !text.empty(); ++printed) {
    if (printed == kStackLines) return lines.add("", "... (`--json` has them all)");
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string of = printed == 0 ? fmt::format("rank {}: ", stacks->rank) : "";
    lines.wrapped(printed == 0 ? "stacks" : "", of + std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Without a cause the agent recorded nothing but where a hang was.
bool ended_by_silence(const Evidence& evidence) {
  return !evidence.cause || evidence.cause == EndCause::kHang || evidence.cause == EndCause::kTimeout;
}

// Takes the ranks out of the evidence and shows each on a line of its own.
void add_ranks(Lines& lines, Evidence& evidence) {
  std::size_t printed = 0;
  std::vector<RankPosition> none;
  for (auto* ranks : {&evidence.ranks, evidence.hang ? &evidence.hang->ranks : &none}) {
    for (const RankPosition& rank : *ranks)
      if (++printed <= kEvidenceLines) lines.wrapped(printed == 1 ? "ranks" : "", rank_line(rank));
    ranks->clear();
  }
  // The agent describes the end of every attempt there. Of one that did not hang, the description is the
  // reason above.
  if (evidence.hang && !ended_by_silence(evidence)) {
    evidence.hang->why.clear();
    if (evidence.hang == AgentEvidence()) evidence.hang.reset();
  }
  if (printed > kEvidenceLines) lines.add("", fmt::format("... and {} more", printed - kEvidenceLines));
}

std::string member_text(const std::string& value) {
  return value;
}
std::string member_text(bool value) {
  return value ? "true" : "false";
}
std::string member_text(const std::vector<std::string>& value) {
  return dump(value);
}
template <Recorded T>
std::string member_text(const std::optional<T>& value) {
  return to_text(*value);
}

// A member without a sentence of its own by its name; one that says nothing is left out.
template <class T>
void add_named(std::vector<std::string>& out, const char* name, const T& value) {
  if (value != T()) out.push_back(fmt::format("{}: {}", name, member_text(value)));
}

// A sentence for each member that the lines above do not show; the list names every member of the record.
std::vector<std::string> sentences_of(const Evidence& evidence, i64 world) {
  const auto& [reported, phase, cause, cleanup_failure, gpu_errors, unreadable_records, hang, ranks,
               cause_rank, log_tail, signal, exit_code, log_speaks_of_memory, steps_are_of, no_timings,
               found] = evidence;
  const std::string rank = cause_rank ? fmt::format("rank {}", *cause_rank) : "a rank";
  std::vector<std::string> out;
  if (cause) out.push_back(fmt::format("the agent reported: {}", to_string(*cause)));
  add_named(out, "cleanup_failure", cleanup_failure);
  if (exit_code) out.push_back(fmt::format("{} exited with code {}", rank, *exit_code));
  add_named(out, "found", found);
  add_named(out, "gpu_errors", gpu_errors);
  add_named(out, "hang", hang);
  add_named(out, "log_speaks_of_memory", log_speaks_of_memory);
  if (!log_tail.empty()) out.push_back(fmt::format("the log of {} ends:\n{}", rank, log_tail));
  add_named(out, "no_timings", no_timings);
  if (!signal.empty()) out.push_back(fmt::format("{} was ended by {}", rank, signal));
  add_named(out, "steps_are_of", steps_are_of);
  out.push_back(fmt::format("{} of {} ranks left a record, {} an exit status", reported.records, world,
                            reported.exits));
  add_named(out, "unreadable_records", unreadable_records);
  return out;
}

// The evidence, a sentence for each member; long texts (log tails) with their own lines, bounded.
void add_evidence(Lines& lines, Evidence evidence, i64 world) {
  if (evidence == Evidence()) return;
  std::size_t printed = 0;
  add_stacks(lines, evidence);
  add_ranks(lines, evidence);
  for (std::string& text : sentences_of(evidence, world)) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::string label = printed == 0 ? "evidence" : "";
    for (std::size_t from = 0; from <= text.size() && printed < kEvidenceLines; ++printed) {
      const std::size_t end = std::min(text.find('\n', from), text.size());
      lines.wrapped(label, (from == 0 ? "" : "  ") + text.substr(from, end - from));
      label = "";
      from = end + 1;
    }
  }
  if (printed >= kEvidenceLines) lines.add("", "... (`sweep logs` shows a rank's whole log)");
}

// An attempt that ended well needs no explanation but what its figures lack, and the errors that its GPUs reported meanwhile.
void add_remarks(Lines& lines, const Evidence& evidence) {
  std::vector<std::string> said;
  add_named(said, "no_timings", evidence.no_timings);
  add_named(said, "steps_are_of", evidence.steps_are_of);
  for (const std::string& each : said) lines.wrapped("", safe_text(each));
  const auto& errors = evidence.gpu_errors;
  for (std::size_t i = 0; i < std::min(errors.size(), kEvidenceLines); ++i)
    lines.wrapped("", safe_text(errors[i]));
}

void add_attempt(Lines& lines, const ExplainAttempt& a, bool is_final, i64 world) {
  std::string head = fmt::format("{}: ", a.id);
  head += a.result ? outcome_of(*a.result) + (is_final ? " (final)" : "") : std::string(to_string(a.state));
  if (!a.where.empty()) head += fmt::format("  {}", safe_text(a.where));
  lines.add("attempt", head);
  if (!a.result) return;
  if (!a.result->reason.empty()) lines.wrapped("", a.result->reason);
  add_metrics(lines, a.result->metrics, a.result->outcome == Outcome::kOk);
  if (a.result->outcome == Outcome::kOk)
    add_remarks(lines, a.result->evidence);
  else
    add_evidence(lines, a.result->evidence, world);
}

}  // namespace

std::optional<RankStacks> deciding_stacks(const Evidence& evidence) {
  std::optional<RankStacks> out;
  const std::vector<RankPosition> none;
  for (const auto* ranks : {&evidence.ranks, evidence.hang ? &evidence.hang->ranks : &none})
    for (const RankPosition& rank : *ranks) {
      if (rank.stacks.empty()) continue;
      const bool decided = rank.rank == evidence.cause_rank;
      if (!out || decided) out = RankStacks{rank.rank, rank.stacks};
      if (decided) return out;
    }
  return out;
}

std::string attempt_text(const ExplainAttempt& attempt, bool is_final, i64 world) {
  Lines lines(0);
  add_attempt(lines, attempt, is_final, world);
  return lines.take();
}

std::string explain(const ExplainView& view, std::size_t width) {
  Lines lines(width);
  const PlanEntry& entry = view.entry;
  lines.add("trial", fmt::format("{}{}{}", safe_text(entry.id), entry.source.empty() ? "" : "  from ",
                                 safe_text(entry.source)));
  lines.wrapped("", configuration(entry.trial));
  std::string_view command = view.command;
  for (bool first = true; !command.empty(); first = false) {
    const std::size_t end = std::min(command.find('\n'), command.size());
    lines.wrapped(first ? "command" : "", command.substr(0, end));
    command.remove_prefix(std::min(end + 1, command.size()));
  }
  if (entry.admitted) {
    lines.add("plan", fmt::format("admitted, number {} in the run order", entry.order + 1));
  } else {
    lines.wrapped("plan", fmt::format("{} by {}: {}", to_string(entry.verdict), entry.rule, entry.reason));
  }
  if (const std::string text = predicted(entry.predicted); !text.empty()) lines.wrapped("predicted", text);
  for (const auto& attempt : view.attempts)
    add_attempt(lines, attempt, view.final_attempt == attempt.id, entry.trial.world());
  if (entry.admitted && view.attempts.empty()) lines.add("result", "not run yet");
  auto nodes = node_lines(view.nodes);
  if (auto slower = slower_kind(entry.trial, view.nodes); !slower.empty()) nodes.push_back(std::move(slower));
  for (std::size_t i = 0; i < nodes.size(); ++i) lines.wrapped(i == 0 ? "nodes" : "", nodes[i]);
  for (std::size_t i = 0; i < view.events.size(); ++i) lines.wrapped(i == 0 ? "events" : "", view.events[i]);
  return lines.take();
}

}  // namespace sweep::answers
