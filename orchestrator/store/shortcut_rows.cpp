// Trials that were stopped early, and audits of pruning.
#include "orchestrator/store/store_file.h"

namespace sweep::store {

Expected<Shortcuts> Answers::shortcuts(i64 sweep) {
  Transaction work(*file_.db, Transaction::kRead);
  Shortcuts out;
  {
    auto rows = work.rows(R"(
        SELECT count(*), COALESCE(sum(r.steps_saved * r.step_ms), 0) / 1e3
        FROM plan_entry p JOIN result r ON r.attempt = p.final_attempt
        WHERE p.sweep = ? AND p.state = State::kFinished AND r.steps_saved IS NOT NULL)",
                          sweep);
    if (rows.next()) out.stopped_early = rows.get<i64>(0), out.seconds_saved = rows.get<double>(1);
  }
  {
    auto rows = work.rows(R"(
      WITH ran AS (
        SELECT p.rule AS rule, p.model AS model, t.hardware AS hardware, t.seq_len AS seq_len, p.outcome AS outcome,
               COALESCE(r.useful_tokens_per_s_gpu, r.tokens_per_s_gpu * COALESCE(r.useful_fraction, 1)) AS rate,
               r.steps_saved AS saved
        FROM plan_entry p JOIN trial t ON t.key = p.trial JOIN result r ON r.attempt = p.final_attempt
        WHERE p.sweep = ? AND p.state = State::kFinished)
      SELECT a.rule, count(*), sum(a.outcome = Outcome::kOk),
             COALESCE(sum(a.outcome = Outcome::kOk AND a.rate > (
               SELECT max(b.rate) FROM ran b
               WHERE b.model = a.model AND b.hardware = a.hardware AND b.seq_len = a.seq_len
                 AND b.outcome = Outcome::kOk AND b.rule = '' AND b.saved IS NULL)), 0)
      FROM ran a WHERE a.rule <> '' AND a.outcome IN (Outcome::kOk, Outcome::kOom)
      GROUP BY a.rule ORDER BY a.rule)",
                          sweep);
    while (rows.next())
      out.audited.push_back({rows.get<std::string>(0), rows.get<i64>(1), rows.get<i64>(2), rows.get<i64>(3)});
  }
  return work.commit(std::move(out));
}

}  // namespace sweep::store
