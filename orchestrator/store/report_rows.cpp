#include "orchestrator/store/report_rows.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "orchestrator/store/columns.h"
#include "schema/codec.h"

namespace sweep::store {
namespace {

constexpr std::string_view kWriteRecord =
    "INSERT INTO rank_record(attempt, rank, outcome, oom_kind, phase, step, message, oom_asked_bytes, "
    "ended_unix_ns, "
    "consequential, startup_ns, peak_allocated_bytes, peak_reserved_bytes, baseline_bytes, alloc_retries, "
    "ooms, "
    "host_peak_rss_bytes, cpu_percent, effective, sent, expert_load, skipped_steps, loss_scale) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT(attempt, rank) DO UPDATE SET outcome = excluded.outcome, oom_kind = excluded.oom_kind, "
    "phase = excluded.phase, step = excluded.step, message = excluded.message, "
    "oom_asked_bytes = excluded.oom_asked_bytes, ended_unix_ns = excluded.ended_unix_ns, "
    "consequential = excluded.consequential, startup_ns = excluded.startup_ns, "
    "peak_allocated_bytes = excluded.peak_allocated_bytes, peak_reserved_bytes = "
    "excluded.peak_reserved_bytes, "
    "baseline_bytes = excluded.baseline_bytes, alloc_retries = excluded.alloc_retries, ooms = excluded.ooms, "
    "host_peak_rss_bytes = excluded.host_peak_rss_bytes, cpu_percent = excluded.cpu_percent, "
    "effective = excluded.effective, sent = excluded.sent, expert_load = excluded.expert_load, "
    "skipped_steps = excluded.skipped_steps, loss_scale = excluded.loss_scale";

constexpr std::string_view kWriteSample =
    "INSERT OR REPLACE INTO step_sample(attempt, rank, repeat, step, warmup, step_ns, forward_ns, "
    "backward_ns, "
    "optimizer_ns, exposed_comm_ns, tokens, loss, alloc_retries) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
    "?)";

constexpr std::string_view kWriteExit =
    "INSERT INTO rank_record(attempt, rank, pid, exit_code, signal, killed_by_agent, oom_killed, "
    "exit_unix_ns, log_tail) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(attempt, rank) DO UPDATE SET pid = excluded.pid, "
    "exit_code = excluded.exit_code, signal = excluded.signal, killed_by_agent = excluded.killed_by_agent, "
    "oom_killed = excluded.oom_killed, exit_unix_ns = excluded.exit_unix_ns, log_tail = excluded.log_tail";

std::vector<StepSample> read_samples(Transaction& work, i64 attempt, i64 rank) {
  std::vector<StepSample> out;
  auto rows = work.rows(
      "SELECT repeat, step, warmup, step_ns, forward_ns, backward_ns, optimizer_ns, exposed_comm_ns, tokens, "
      "loss, "
      "alloc_retries FROM step_sample WHERE attempt = ? AND rank = ? ORDER BY repeat, step",
      attempt, rank);
  while (rows.next()) {
    StepSample s;
    rows.read(0, s.repeat), rows.read(1, s.step), rows.read(2, s.warmup), rows.read(3, s.step_ns);
    rows.read(4, s.forward_ns), rows.read(5, s.backward_ns), rows.read(6, s.optimizer_ns);
    rows.read(7, s.exposed_comm_ns), rows.read(8, s.tokens);
    s.loss = rows.null(9) ? std::nan("") : rows.get<double>(9);
    rows.read(10, s.alloc_retries);
    out.push_back(s);
  }
  return out;
}

std::string sent_text(const std::vector<SentTraffic>& sent) {
  nlohmann::json list = nlohmann::json::array();
  for (const SentTraffic& each : sent) list.push_back(to_json(each));
  return dump(list);
}

// What is no such list was not written here: nothing is known then.
std::vector<SentTraffic> sent_from(const std::string& text) {
  std::vector<SentTraffic> out;
  const auto list = parse_json(text);
  if (!list || !list->is_array()) return out;
  for (const auto& item : *list)
    if (auto each = from_json<SentTraffic>(item)) out.push_back(std::move(*each));
  return out;
}

}  // namespace

void write_record(Transaction& work, const RankRecord& r) {
  work.run("DELETE FROM step_sample WHERE attempt = ? AND rank = ?", r.attempt, r.rank);
  work.run(kWriteRecord, r.attempt, r.rank, r.outcome, r.oom_kind, r.phase, r.step, r.message,
           r.oom_asked_bytes, r.ended_unix_ns, r.consequential, r.startup_ns, r.peak_allocated_bytes,
           r.peak_reserved_bytes, r.baseline_bytes, r.alloc_retries, r.ooms, r.host_peak_rss_bytes,
           r.cpu_percent, r.effective, sent_text(r.sent), r.expert_load, r.skipped_steps, r.loss_scale);
  Statement* insert = work.ready(kWriteSample);
  for (const StepSample& s : r.samples) {
    if (!insert || work.failed()) return;
    insert->put_all(r.attempt, r.rank, s.repeat, s.step, s.warmup, s.step_ns, s.forward_ns, s.backward_ns,
                    s.optimizer_ns, s.exposed_comm_ns, s.tokens, s.loss, s.alloc_retries);
    work.finish(*insert);
  }
}

void write_exit(Transaction& work, const RankExit& e) {
  work.run(kWriteExit, e.attempt, e.rank, e.pid, e.exit_code, e.signal, e.killed_by_agent, e.oom_killed,
           e.ended_unix_ns, e.log_tail);
}

void write_end(Transaction& work, const AttemptEnd& e) {
  work.run(
      "UPDATE attempt SET started_unix_ns = COALESCE(NULLIF(?, 0), started_unix_ns), ended_unix_ns = ?, "
      "cause = ?, "
      "evidence = ?, clean = ?, dirt = ?, util_mean = ?, util_sd = ?, power_mean_w = ?, sm_clock_mhz = ?, "
      "throttle = ? "
      "WHERE id = ?",
      e.started_unix_ns, e.ended_unix_ns, to_string(e.cause), e.evidence, e.clean, e.cleanup_failure,
      e.util_mean, e.util_sd, e.power_mean_w, e.sm_clock_mhz, e.throttle, e.attempt);
}

void write_started(Transaction& work, i64 attempt, i64 unix_ns) {
  work.run("UPDATE attempt SET state = ?, started_unix_ns = ? WHERE id = ? AND state < ?", State::kRunning,
           unix_ns, attempt, State::kFinished);
  work.run(
      "UPDATE plan_entry SET state = ? WHERE key = (SELECT entry FROM attempt WHERE id = ?) AND state = ?",
      State::kRunning, attempt, State::kPosted);
}

void write_node(Transaction& work, std::string_view allocation, const NodeRecord& n) {
  work.run("INSERT OR REPLACE INTO environment(allocation, node, host, facts) VALUES (?, ?, ?, ?)",
           allocation, n.node, n.host, n.facts);
}

void write_result(Transaction& work, const Result& r) {
  if (Statement* insert = work.ready(insert_result_sql())) {
    const std::string_view phase = r.phase ? to_string(*r.phase) : "";
    insert->put_all(r.attempt, r.outcome, r.oom_kind, r.reason, r.rank, phase, r.evidence,
                    r.finished_unix_ns);
    put_metrics(*insert, 9, r.metrics);
    work.finish(*insert);
  }
  work.run("UPDATE attempt SET state = ? WHERE id = ?", State::kFinished, r.attempt);
}

std::vector<RankRecord> read_records(Transaction& work, i64 attempt) {
  std::vector<RankRecord> out;
  {
    auto rows = work.rows(
        "SELECT rank, outcome, oom_kind, phase, step, message, oom_asked_bytes, ended_unix_ns, "
        "consequential, startup_ns, "
        "peak_allocated_bytes, peak_reserved_bytes, baseline_bytes, alloc_retries, ooms, "
        "host_peak_rss_bytes, "
        "cpu_percent, effective, sent, expert_load, skipped_steps, loss_scale FROM rank_record WHERE attempt "
        "= ? AND outcome IS NOT NULL ORDER BY rank",
        attempt);
    while (rows.next()) {
      RankRecord r;
      r.attempt = attempt;
      rows.read(0, r.rank), rows.read(1, r.outcome), rows.read(2, r.oom_kind), rows.read(3, r.phase);
      rows.read(4, r.step), rows.read(5, r.message), rows.read(6, r.oom_asked_bytes),
          rows.read(7, r.ended_unix_ns);
      rows.read(8, r.consequential), rows.read(9, r.startup_ns), rows.read(10, r.peak_allocated_bytes);
      rows.read(11, r.peak_reserved_bytes), rows.read(12, r.baseline_bytes), rows.read(13, r.alloc_retries);
      rows.read(14, r.ooms), rows.read(15, r.host_peak_rss_bytes), rows.read(16, r.cpu_percent);
      rows.read(17, r.effective), rows.read(19, r.expert_load), rows.read(20, r.skipped_steps);
      rows.read(21, r.loss_scale);
      read_effective(r);
      if (!rows.null(18)) r.sent = sent_from(rows.get<std::string>(18));
      out.push_back(std::move(r));
    }
  }
  for (RankRecord& record : out) record.samples = read_samples(work, attempt, record.rank);
  return out;
}

std::vector<RankExit> read_exits(Transaction& work, i64 attempt) {
  std::vector<RankExit> out;
  auto rows = work.rows(
      "SELECT rank, pid, exit_code, signal, killed_by_agent, oom_killed, exit_unix_ns, log_tail FROM "
      "rank_record "
      "WHERE attempt = ? AND killed_by_agent IS NOT NULL ORDER BY rank",
      attempt);
  while (rows.next()) {
    RankExit e;
    e.attempt = attempt;
    rows.read(0, e.rank), rows.read(1, e.pid), rows.read(2, e.exit_code), rows.read(3, e.signal);
    rows.read(4, e.killed_by_agent), rows.read(5, e.oom_killed), rows.read(6, e.ended_unix_ns),
        rows.read(7, e.log_tail);
    out.push_back(std::move(e));
  }
  return out;
}

std::optional<AttemptEnd> read_end(Transaction& work, i64 attempt) {
  auto rows = work.rows(
      "SELECT cause, evidence, clean, dirt, util_mean, util_sd, power_mean_w, sm_clock_mhz, throttle, "
      "started_unix_ns, "
      "ended_unix_ns FROM attempt WHERE id = ? AND cause IS NOT NULL",
      attempt);
  if (!rows.next()) return std::nullopt;
  AttemptEnd e;
  e.attempt = attempt;
  e.cause = end_cause_from(rows.get<std::string>(0)).value_or(EndCause::kRankFailed);
  rows.read(1, e.evidence), rows.read(2, e.clean), rows.read(3, e.cleanup_failure);
  rows.read(4, e.util_mean), rows.read(5, e.util_sd), rows.read(6, e.power_mean_w),
      rows.read(7, e.sm_clock_mhz);
  rows.read(8, e.throttle), rows.read(9, e.started_unix_ns), rows.read(10, e.ended_unix_ns);
  return e;
}

}  // namespace sweep::store
