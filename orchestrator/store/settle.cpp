#include "orchestrator/store/settle.h"

#include <span>

#include "schema/sweep_options.h"

namespace sweep::store {
namespace {

struct Past {
  State state = State::kPending;  // of the attempt that is under way
  i64 attempts = 0;
  Tries tries;   // since the entry was last reopened
  i64 lost = 0;  // of tries.infra, those the machine lost
  i64 last_lost = 0;
  std::optional<std::pair<i64, Outcome>> final;  // last one that was not infrastructure
  bool final_is_fresh = false;                   // ... and it came after the reopening
};

struct Entry {
  i64 reopened_after = 0;
  bool retired = false, admitted = true;
  Outcome verdict = Outcome::kPruned;
  std::optional<i64> final_attempt;
};

// In the order of posting: within one database stamps of a trial only grow (kPostedAfter), and between merged ones
// they are the only order there is.
Past look_back(Transaction& work, i64 entry, i64 reopened_after) {
  Past past;
  bool fresh = reopened_after == 0;
  auto rows = work.rows(
      "SELECT a.id, a.state, r.outcome FROM attempt a LEFT JOIN result r ON r.attempt = a.id WHERE a.entry = "
      "? "
      "ORDER BY a.posted_unix_ns, a.id",
      entry);
  while (rows.next()) {
    const i64 id = rows.get<i64>(0);
    ++past.attempts;
    if (rows.null(2)) {
      past.state = std::max(past.state, rows.get<State>(1));
    } else if (const auto outcome = rows.get<Outcome>(2); is_infrastructure(outcome)) {
      past.tries.infra += fresh;
      past.lost += fresh && outcome == Outcome::kNodeLost;
      if (outcome == Outcome::kNodeLost) past.last_lost = id;
    } else {
      past.tries.counted += fresh;
      past.final = {id, outcome};
      past.final_is_fresh = fresh;
    }
    fresh |= id == reopened_after;
  }
  return past;
}

bool stands(Outcome outcome, i64 tries, const Retries& retries) {
  if (outcome == Outcome::kCrash) return tries > retries.crash;
  if (outcome == Outcome::kHang) return tries > retries.hang;
  if (outcome == Outcome::kTimeout) return tries > retries.timeout;
  return true;
}

State state_of(const Entry& entry, const Past& past, const Retries& retries) {
  if (entry.retired) return State::kRetired;
  if (past.state != State::kPending) return past.state;
  const bool answered =
      past.final && past.final_is_fresh && stands(past.final->second, past.tries.counted, retries);
  if (answered || past.lost > retries.infra) return State::kFinished;
  return entry.admitted ? State::kPending : State::kFinished;
}

// The group of a trial that may be ranked; made when it is the first of its kind.
i64 ranking_group(Transaction& work, i64 entry) {
  const char* find =
      "SELECT g.id FROM plan_entry p JOIN trial t ON t.key = p.trial JOIN ranking_group g ON g.sweep = "
      "p.sweep AND "
      "g.model = p.model AND g.nodes = t.nodes WHERE p.key = ?";
  if (const auto id = work.one<i64>(find, entry)) return *id;
  work.run(
      "INSERT INTO ranking_group(sweep, model, nodes) SELECT p.sweep, p.model, t.nodes FROM plan_entry p "
      "JOIN trial t ON "
      "t.key = p.trial WHERE p.key = ?",
      entry);
  return work.last_id();
}

}  // namespace

Retries retries_of(Transaction& work, i64 sweep) {
  const auto options = sweep_options_from(
      work.one<std::string>("SELECT options_json FROM sweep WHERE id = ?", sweep).value_or(""));
  Retries retries;
  if (!options) return retries;
  retries.crash = options->retries_crash.value_or(retries.crash);
  retries.hang = options->retries_hang.value_or(retries.hang);
  retries.timeout = options->retries_timeout.value_or(retries.timeout);
  retries.infra = options->retries_infra.value_or(retries.infra);
  return retries;
}

Tries tries_of(Transaction& work, i64 entry) {
  const i64 after = work.one<i64>("SELECT reopened_after FROM plan_entry WHERE key = ?", entry).value_or(0);
  return look_back(work, entry, after).tries;
}

void settle(Transaction& work, i64 key, const Retries& retries) {
  Entry entry;
  {
    auto rows = work.rows(
        "SELECT reopened_after, state, admitted, verdict, final_attempt FROM plan_entry WHERE key = ?", key);
    if (!rows.next()) return;
    entry = {rows.get<i64>(0), rows.get<State>(1) == State::kRetired, rows.get<bool>(2), rows.get<Outcome>(3),
             rows.get<std::optional<i64>>(4)};
  }
  const Past past = look_back(work, key, entry.reopened_after);
  const State state = state_of(entry, past, retries);
  std::optional<i64> final_attempt;
  std::optional<Outcome> outcome;
  if (past.final) {
    final_attempt = past.final->first, outcome = past.final->second;
  } else if (past.lost > retries.infra) {
    final_attempt = past.last_lost, outcome = Outcome::kNodeLost;
  } else if (!entry.admitted) {
    outcome = entry.verdict;
  }
  work.run("UPDATE plan_entry SET state = ?, outcome = ?, final_attempt = ?, attempts = ? WHERE key = ?",
           state, outcome, final_attempt, past.attempts, key);
  if (entry.final_attempt && entry.final_attempt != final_attempt)
    work.run("UPDATE result SET ranking = NULL WHERE attempt = ? AND ranking IS NOT NULL",
             *entry.final_attempt);
  if (!final_attempt) return;
  std::optional<i64> ranking;
  if (outcome == Outcome::kOk && state != State::kRetired) ranking = ranking_group(work, key);
  work.run("UPDATE result SET ranking = ?1 WHERE attempt = ?2 AND ranking IS NOT ?1", ranking,
           *final_attempt);
}

void reopen_entries(Transaction& work, i64 sweep, std::span<const Outcome> outcomes) {
  for (const Outcome outcome : outcomes)
    work.run(
        "UPDATE plan_entry SET state = 0, reopened_after = (SELECT a.id FROM attempt a WHERE a.entry = "
        "plan_entry.key ORDER BY a.posted_unix_ns DESC, a.id DESC LIMIT 1), final_attempt = CASE WHEN "
        "outcome IN (6, 8) THEN NULL ELSE final_attempt END, "
        "outcome = CASE WHEN outcome IN (6, 8) THEN NULL ELSE outcome END "
        "WHERE sweep = ? AND state = 3 AND outcome = ? AND final_attempt IS NOT NULL AND admitted = 1",
        sweep, outcome);
}

}  // namespace sweep::store
