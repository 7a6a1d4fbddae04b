#include "orchestrator/store/settle.h"

#include <span>

namespace sweep::store {
namespace {

// In the order of posting: within one database stamps of a trial only grow (kPostedAfter), and between merged ones
// they are the only order there is.
std::vector<PastAttempt> attempts_of(Transaction& work, i64 entry, i64 reopened_after) {
  std::vector<PastAttempt> past;
  bool fresh = reopened_after == 0;
  auto rows = work.rows(
      "SELECT a.id, a.state, r.outcome FROM attempt a LEFT JOIN result r ON r.attempt = a.id WHERE a.entry = "
      "? "
      "ORDER BY a.posted_unix_ns, a.id",
      entry);
  while (rows.next()) {
    PastAttempt attempt;
    attempt.id = rows.get<i64>(0), attempt.state = rows.get<State>(1);
    attempt.outcome = rows.get<std::optional<Outcome>>(2);
    attempt.fresh = fresh;
    past.push_back(attempt);
    fresh |= attempt.id == reopened_after;
  }
  return past;
}

// The group of a trial that may be ranked; made when it is the first of its kind.
i64 ranking_group(Transaction& work, i64 entry) {
  const char* find =
      "SELECT g.id FROM plan_entry p JOIN trial t ON t.key = p.trial JOIN ranking_group g ON g.sweep = "
      "p.sweep "
      "AND g.model = p.model AND g.nodes = t.nodes WHERE p.key = ?";
  if (const auto id = work.one<i64>(find, entry)) return *id;
  work.run(
      "INSERT INTO ranking_group(sweep, model, nodes) SELECT p.sweep, p.model, t.nodes FROM plan_entry p "
      "JOIN trial t ON t.key = p.trial WHERE p.key = ?",
      entry);
  return work.last_id();
}

// Only the final attempt of a trial is ranked, and only while it is ok and in the plan.
void rank(Transaction& work, i64 entry, std::optional<i64> before, const TrialDecision& decision) {
  if (before && before != decision.final_attempt)
    work.run("UPDATE result SET ranking = NULL WHERE attempt = ? AND ranking IS NOT NULL", *before);
  if (!decision.final_attempt) return;
  std::optional<i64> ranking;
  if (decision.outcome == Outcome::kOk && decision.state != State::kRetired)
    ranking = ranking_group(work, entry);
  work.run("UPDATE result SET ranking = ?1 WHERE attempt = ?2 AND ranking IS NOT ?1", ranking,
           *decision.final_attempt);
}

}  // namespace

SweepRules rules_of(Transaction& work, i64 sweep, const DecideTrial& decide) {
  auto options = sweep_options_from(
      work.one<std::string>("SELECT options_json FROM sweep WHERE id = ?", sweep).value_or(""));
  return {decide, options ? std::move(*options) : SweepOptions()};
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
  std::optional<i64> final_before;
  {
    auto rows = work.rows(
        "SELECT reopened_after, state, admitted, verdict, final_attempt FROM plan_entry WHERE key = ?", key);
    if (!rows.next()) return;
    reopened_after = rows.get<i64>(0);
    trial.retired = rows.get<State>(1) == State::kRetired;
    trial.admitted = rows.get<bool>(2), trial.plan_outcome = rows.get<Outcome>(3);
    final_before = rows.get<std::optional<i64>>(4);
  }
  trial.attempts = attempts_of(work, key, reopened_after);
  const TrialDecision decision = rules.decide(trial, rules.options);
  work.run("UPDATE plan_entry SET state = ?, outcome = ?, final_attempt = ?, attempts = ? WHERE key = ?",
           decision.state, decision.outcome, decision.final_attempt, static_cast<i64>(trial.attempts.size()),
           key);
  rank(work, key, final_before, decision);
}

// An outcome of the machine's making is forgotten at once; any other one is shown until the new one is there.
void reopen_entries(Transaction& work, i64 sweep, std::span<const Outcome> outcomes) {
  for (const Outcome outcome : outcomes)
    work.run(
        "UPDATE plan_entry SET state = ?1, reopened_after = (SELECT a.id FROM attempt a WHERE a.entry = "
        "plan_entry.key ORDER BY a.posted_unix_ns DESC, a.id DESC LIMIT 1), final_attempt = CASE WHEN ?2 "
        "THEN NULL "
        "ELSE final_attempt END, outcome = CASE WHEN ?2 THEN NULL ELSE outcome END WHERE sweep = ?3 AND "
        "state = ?4 "
        "AND outcome = ?5 AND final_attempt IS NOT NULL AND admitted = 1",
        State::kPending, is_infrastructure(outcome), sweep, State::kFinished, outcome);
}

}  // namespace sweep::store
