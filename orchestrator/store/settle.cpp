#include "orchestrator/store/settle.h"

#include <span>

#include "orchestrator/store/sweep_rows.h"
#include "schema/audit.h"

namespace sweep::store {
namespace {

// Attempts in the order of posting: within one database stamps of a trial only grow (insert_attempt), and between
// merged ones they are the only order there is.
std::vector<PastAttempt> attempts_of(Transaction& work, i64 entry, i64 reopened_after) {
  std::vector<PastAttempt> past;
  bool fresh = reopened_after == 0;
  auto rows = work.rows(R"(
      SELECT a.id, a.state, r.outcome FROM attempt a LEFT JOIN result r ON r.attempt = a.id
      WHERE a.entry = ? ORDER BY a.posted_unix_ns, a.id)",
                        entry);
  while (rows.next()) {
    PastAttempt attempt;
    attempt.id = rows.get<i64>(0);
    attempt.state = rows.get<State>(1);
    attempt.outcome = rows.get<std::optional<Outcome>>(2);
    attempt.fresh = fresh;
    past.push_back(attempt);
    fresh |= attempt.id == reopened_after;
  }
  return past;
}

}  // namespace

SweepRules rules_of(Transaction& work, i64 sweep, const DecideTrial& decide) {
  return {decide, options_of(work, sweep)};
}

Tries tries_of(Transaction& work, i64 entry) {
  const i64 after = work.one<i64>("SELECT reopened_after FROM plan_entry WHERE key = ?", entry).value_or(0);
  Tries tries;
  for (const PastAttempt& attempt : attempts_of(work, entry, after)) {
    if (!attempt.outcome || !attempt.fresh) continue;
    ++(is_infrastructure(*attempt.outcome) ? tries.infra : tries.counted);
  }
  return tries;
}

void settle(Transaction& work, i64 key, const SweepRules& rules) {
  if (!rules.decide)
    return work.refuse(
        "this database was opened without the rules that decide whether a trial is tried again");
  TrialHistory trial;
  i64 reopened_after = 0;
  bool reused = false;
  {
    auto rows = work.rows(R"(
        SELECT reopened_after, state, admitted, verdict, final_attempt IS NOT NULL
        FROM plan_entry WHERE key = ?)",
                          key);
    if (!rows.next()) return;
    reused = rows.get<State>(1) == State::kFinished && rows.get<bool>(4);
    reopened_after = rows.get<i64>(0);
    trial.retired = rows.get<State>(1) == State::kRetired;
    trial.admitted = rows.get<bool>(2);
    trial.plan_outcome = rows.get<Outcome>(3);
  }
  trial.attempts = attempts_of(work, key, reopened_after);
  // Answered by an attempt of another sweep: the answer stands until the trial is reopened.
  if (reused && trial.attempts.empty()) return;
  const TrialDecision decision = rules.decide(trial, rules.options);
  work.run("UPDATE plan_entry SET state = ?, outcome = ?, final_attempt = ?, attempts = ? WHERE key = ?",
           decision.state, decision.outcome, decision.final_attempt, static_cast<i64>(trial.attempts.size()),
           key);
}

namespace {

// Pruned trials that were never run, by a rule that stands on results of this outcome.
void reopen_conclusions(Transaction& work, i64 sweep, Outcome outcome) {
  if (outcome != Outcome::kOom && outcome != Outcome::kOk) return;
  work.run(R"(
      UPDATE plan_entry SET state = State::kPending, outcome = NULL, admitted = 1, rule = '', reason = ''
      WHERE sweep = ? AND admitted = 0 AND attempts = 0 AND final_attempt IS NULL AND rule = ?)",
           sweep, outcome == Outcome::kOom ? kHistoryRule : kRecomputeRule);
}

}  // namespace

// An outcome of the machine's making is forgotten at once; any other one is shown until the new one is there.
void reopen_entries(Transaction& work, i64 sweep, std::span<const Outcome> outcomes,
                    const std::optional<std::string>& trial) {
  for (const Outcome outcome : outcomes)
    work.run(R"(
        UPDATE plan_entry SET
          state = State::kPending,
          reopened_after = COALESCE((SELECT a.id FROM attempt a WHERE a.entry = plan_entry.key
                                     ORDER BY a.posted_unix_ns DESC, a.id DESC LIMIT 1), 0),
          final_attempt = CASE WHEN ?1 THEN NULL ELSE final_attempt END,
          outcome = CASE WHEN ?1 THEN NULL ELSE outcome END
        WHERE sweep = ?2 AND state = State::kFinished AND outcome = ?3
          AND final_attempt IS NOT NULL AND admitted = 1
          AND (?4 IS NULL OR trial = (SELECT t.key FROM trial t WHERE t.id = ?4)))",
             is_infrastructure(outcome), sweep, outcome, trial);
  if (trial) return;
  for (const Outcome outcome : outcomes) reopen_conclusions(work, sweep, outcome);
}

}  // namespace sweep::store
