#include "orchestrator/cli/saved_queries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "base/files.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/report/format.h"

namespace sweep::cli {
namespace {

struct BuiltIn {
  const char *name, *sentence, *sql;
};

constexpr BuiltIn kBuiltIn[] = {
    {"outcomes", "how many trials ended how, by sweep",
     "SELECT sweep, coalesce(outcome, 'not run yet') AS outcome, count(*) AS trials FROM results GROUP BY 1, "
     "2 ORDER BY "
     "1, 3 DESC"},
    {"best", "the fastest configuration of each model and node count",
     "SELECT sweep, model, nodes, max(tokens_per_s_gpu) AS tokens_per_s_gpu, mfu, dp, tp, pp, cp, zero, "
     "micro_batch_size, "
     "grad_accum, trial FROM results WHERE outcome = 'ok' GROUP BY sweep, model, nodes"},
    {"reasons", "why trials did not end ok, the frequent reasons first",
     "SELECT sweep, outcome, reason, count(*) AS trials, min(trial) AS for_example FROM results WHERE "
     "outcome <> 'ok' "
     "GROUP BY sweep, outcome, reason ORDER BY trials DESC"},
    {"retries", "trials with cudaMalloc retries: memory was nearly full",
     "SELECT sweep, trial, model, micro_batch_size, alloc_retries, peak_allocated_bytes, "
     "peak_reserved_bytes, step_ms FROM "
     "results WHERE alloc_retries > 0 ORDER BY alloc_retries DESC"},
    {"predictions", "predicted against measured memory and step time",
     "SELECT sweep, trial, predicted_bytes * 1.0 / peak_allocated_bytes AS bytes_ratio, predicted_ms / "
     "step_ms AS ms_ratio "
     "FROM results WHERE outcome = 'ok' ORDER BY abs(ln(coalesce(bytes_ratio, 1))) DESC"},
    {"noise", "trials whose step time varies most between steps",
     "SELECT sweep, trial, step_ms, step_ms_iqr / step_ms AS spread, timed_steps, throttle, sm_clock_mhz "
     "FROM results WHERE "
     "outcome = 'ok' AND step_ms_iqr IS NOT NULL ORDER BY spread DESC"},
    {"startup", "how long trials took before their first measured step",
     "SELECT sweep, world, count(*) AS trials, avg(startup_ms) AS mean_ms, max(startup_ms) AS worst_ms FROM "
     "(SELECT sweep, "
     "dp * tp * pp * cp AS world, startup_ms FROM results WHERE startup_ms IS NOT NULL) GROUP BY sweep, "
     "world ORDER BY 1, 2"},
    {"steps", "every timed step of one trial, slowest rank first (--set trial=ID)",
     "SELECT s.attempt, s.repeat, s.step, s.rank, s.step_ns / 1e6 AS step_ms, s.forward_ns / 1e6 AS "
     "forward_ms, "
     "s.backward_ns / 1e6 AS backward_ms, s.optimizer_ns / 1e6 AS optimizer_ms, s.loss FROM trial t JOIN "
     "plan_entry p ON "
     "p.trial = t.key JOIN step_sample s ON s.attempt = p.final_attempt WHERE t.id LIKE :trial || '%' AND "
     "NOT s.warmup ORDER "
     "BY s.repeat, s.step, s.step_ns DESC"},
    {"machines", "the nodes results were measured on",
     "SELECT DISTINCT w.name AS sweep, e.host, e.facts ->> '$.gpus[0].name' AS gpu, e.facts ->> '$.driver' "
     "AS driver, "
     "e.facts ->> '$.nccl' AS nccl, e.facts ->> '$.build' AS build FROM environment e JOIN allocation a ON "
     "a.id = "
     "e.allocation JOIN sweep w ON w.id = a.sweep ORDER BY 1, 2"},
};

// The comment of the first line is the sentence that --list shows.
std::string first_comment(const std::string& sql) {
  if (!sql.starts_with("--")) return "";
  const auto text = sql.find_first_not_of("- \t");
  const auto end = sql.find('\n');
  return text == std::string::npos || text >= end ? "" : report::safe_text(sql.substr(text, end - text));
}

}  // namespace

std::filesystem::path query_folder() {
  const auto config = config_folder();
  return config.empty() ? config : config / "queries";
}

bool is_query_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::vector<SavedQuery> saved_queries(const std::filesystem::path& folder) {
  std::map<std::string, SavedQuery> found;
  for (const BuiltIn& q : kBuiltIn) found[q.name] = {q.name, q.sentence, q.sql, "built in"};
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".sql" || !is_query_name(name)) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string sql{std::istreambuf_iterator<char>(in), {}};
    found[name] = {name, first_comment(sql), sql, entry.path().string()};
  }
  std::vector<SavedQuery> out;
  for (auto& [name, query] : found) out.push_back(std::move(query));
  return out;
}

Expected<SavedQuery> find_query(const std::filesystem::path& folder, const std::string& name) {
  std::vector<std::string> names;
  for (SavedQuery& query : saved_queries(folder)) {
    if (query.name == name) return std::move(query);
    names.push_back(query.name);
  }
  const auto close = shape::nearest(name, names);
  return fail(
      fmt::format("there is no saved query '{}'{}; `sweep query --list` shows them, and {}/{}.sql would be "
                  "one of your own",
                  name, close ? fmt::format(" (did you mean '{}'?)", *close) : "",
                  folder.empty() ? "~/.config/sweep/queries" : folder.string(), name));
}

}  // namespace sweep::cli
