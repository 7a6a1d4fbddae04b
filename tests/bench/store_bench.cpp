// Ingest rate and `best` on a large database. Builds it in a temporary folder: a plan of N trials (default
// 1,000,000; first argument), outbox bytes of real shape read, judged and stored for some of them (timed),
// verdicts for all the others.
//   ingest_records_per_s   outbox lines (start, rank records of 13 steps, exits, end) from bytes to committed
//   best_ms                the best trial by one metric; opening the file included; median of 11
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "orchestrator/ingest/ingest.h"
#include "orchestrator/run/retry_policy.h"
#include "orchestrator/store/store.h"
#include "schema/codec.h"
#include "tests/support/must.h"

namespace {

using namespace sweep;
namespace fs = std::filesystem;

constexpr i64 kRanks = 2, kSteps = 13;
constexpr std::int64_t kTrialsPerBatch = 64;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// 20 models on 1 to 16 nodes; the rest of the axes count up.
std::vector<PlanEntry> make_plan(i64 trials) {
  std::vector<PlanEntry> plan(static_cast<std::size_t>(trials));
  for (i64 i = 0; i < trials; ++i) {
    PlanEntry& entry = plan[static_cast<std::size_t>(i)];
    entry.trial.model = "model-" + std::to_string(i % 20);
    entry.trial.spec.layers = 1 + i % 20, entry.trial.spec.hidden_size = 256;
    entry.trial.nodes = i64{1} << (i / 20 % 5), entry.trial.dp = kRanks;
    entry.trial.micro_batch_size = 1 + i / 100;
    entry.id = trial_id(entry.trial), entry.order = i;
  }
  return plan;
}

// Attempts are begun one by one in a run, each in a transaction of its own; here all at once.
void begin_all(const fs::path& file, const std::string& allocation) {
  sqlite3* db = nullptr;
  sqlite3_open(file.c_str(), &db);
  const std::string sql =
      "INSERT INTO attempt(entry, allocation, state, world, request, posted_unix_ns) SELECT key, '" +
      allocation +
      "', 1, 2, '{}', 0 FROM plan_entry ORDER BY key; UPDATE plan_entry SET state = 1, attempts = 1;";
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(db));
  sqlite3_close(db);
}

RankRecord record_of(i64 attempt, i64 rank) {
  RankRecord r;
  r.attempt = attempt, r.rank = rank, r.outcome = Outcome::kOk, r.phase = Phase::kDone, r.ended_unix_ns = 1;
  r.effective.attention = "math", r.effective.backend = "shm", r.effective.device = "cpu";
  r.peak_allocated_bytes = 123456789, r.startup_ns = 98765432, r.cpu_percent = 97.5;
  for (i64 step = 0; step < kSteps; ++step) {
    StepSample s;
    s.step = step, s.warmup = step < 3, s.step_ns = 12345678 + step, s.forward_ns = 4123456,
    s.backward_ns = 7123456;
    s.optimizer_ns = 1012345, s.exposed_comm_ns = 345678, s.tokens = 4096, s.loss = 9.5 - 0.01 * double(step);
    r.samples.push_back(s);
  }
  return r;
}

std::string outbox_of(const std::string& allocation, i64 first_attempt, i64 trials) {
  std::string bytes;
  i64 seq = 0;
  const auto add = [&](std::string_view kind, nlohmann::json body) {
    bytes += spool::frame({allocation, 1, ++seq, std::string(kind), std::move(body)});
  };
  for (i64 id = first_attempt; id < first_attempt + trials; ++id) {
    add(spool::kStarted, {{"attempt", id}, {"pids", {10, 11}}, {"unix_ns", 1}});
    for (i64 rank = 0; rank < kRanks; ++rank) {
      add(spool::kRankRecord, to_json(record_of(id, rank)));
      RankExit exit;
      exit.attempt = id, exit.rank = rank, exit.exit_code = 0;
      add(spool::kRankExit, to_json(exit));
    }
    AttemptEnd end;
    end.attempt = id, end.cause = EndCause::kDone, end.ended_unix_ns = 2;
    add(spool::kAttemptEnd, to_json(end));
  }
  return bytes;
}

void give_metrics(Result& result) {
  const double value = static_cast<double>(result.attempt * 7919 % 1000003);
  result.metrics.step_ms = value * 1e-3, result.metrics.tokens_per_s = value,
  result.metrics.tokens_per_s_gpu = value / 2;
  result.metrics.mfu = value * 1e-6, result.metrics.tflops_gpu = value * 1e-4,
  result.metrics.mt_per_hour = value * 3.6e-3;
  result.metrics.cost_per_mt = 1 / (value + 1), result.metrics.peak_allocated_bytes = 123456789;
}

// One stretch of an outbox, as the run loop handles it.
i64 digest(store::Store& store, const std::string& allocation, std::string_view bytes,
           std::uint64_t& offset) {
  ingest::Batch read = ingest::read(bytes);
  store::IngestBatch batch;
  batch.allocation = allocation, batch.new_offset = offset += read.consumed;
  std::map<i64, ingest::AttemptReports> reports;
  for (auto& message : read.messages) {
    if (auto* started = std::get_if<AttemptStarted>(&message))
      batch.started.emplace_back(started->attempt, 1);
    if (auto* record = std::get_if<RankRecord>(&message)) {
      reports[record->attempt].records[record->rank] = *record;
      batch.rank_records.push_back(std::move(*record));
    }
    if (auto* exit = std::get_if<RankExit>(&message)) {
      reports[exit->attempt].exits[exit->rank] = *exit;
      batch.rank_exits.push_back(std::move(*exit));
    }
    if (auto* end = std::get_if<AttemptEnd>(&message)) {
      reports[end->attempt].end = *end;
      batch.ends.push_back(std::move(*end));
    }
  }
  for (const auto& [id, report] : reports) {
    Attempt attempt;
    attempt.id = id, attempt.trial.dp = kRanks;
    batch.results.push_back(ingest::judge(attempt, report));
    give_metrics(batch.results.back());
  }
  must(store.ingest(batch));
  return static_cast<i64>(read.messages.size());
}

void fill(store::Store& store, const std::string& allocation, i64 first, i64 last, std::uint64_t& offset) {
  store::IngestBatch batch;
  batch.allocation = allocation;
  for (i64 id = first; id <= last; ++id) {
    Result& result = batch.results.emplace_back();
    result.attempt = id, result.outcome = Outcome::kOk, result.finished_unix_ns = 1;
    give_metrics(result);
    if (batch.results.size() < 20000 && id < last) continue;
    batch.new_offset = ++offset;
    must(store.ingest(batch));
    batch.results.clear();
  }
}

double best_ms(const fs::path& file, i64 sweep) {
  std::vector<double> times;
  for (int i = 0; i < 11; ++i)
    times.push_back(1e3 * seconds([&] {
                      auto reader = must(store::Store::open(file, store::Mode::kReadOnly));
                      if (must(reader->best(sweep, "tokens_per_s_gpu", 1)).empty())
                        throw std::runtime_error("no best trial");
                    }));
  std::ranges::nth_element(times, times.begin() + 5);
  return times[5];
}

nlohmann::json measure(const fs::path& dir, i64 trials) {
  const fs::path file = dir / "bench.db";
  auto store = must(run::open_store(file, store::Mode::kReadWrite));
  store::SweepRow row;
  row.name = "bench";
  const i64 sweep = must(store->ensure_sweep(row)).id;
  const auto plan = make_plan(trials);
  const double sync_s = seconds([&] { must(store->sync_plan(sweep, plan, {})); });
  must(store->take_lease(sweep));
  const std::string allocation = must(store->create_allocation(sweep, "local", dir)).id;
  begin_all(file, allocation);

  std::uint64_t offset = 0;
  i64 records = 0, first = 1;
  double ingest_s = 0, ingest_cpu_s = 0;
  for (; first + kTrialsPerBatch <= std::min<i64>(trials, 12800); first += kTrialsPerBatch) {
    const std::string bytes = outbox_of(allocation, first, kTrialsPerBatch);
    const std::clock_t cpu = std::clock();
    ingest_s += seconds([&] { records += digest(*store, allocation, bytes, offset); });
    ingest_cpu_s += static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  }
  fill(*store, allocation, first, trials, offset);
  store.reset();
  const double best = best_ms(file, sweep);
  return {{"ingest_records_per_s", static_cast<double>(records) / ingest_s},
          {"ingest_records_per_cpu_s", static_cast<double>(records) / ingest_cpu_s},
          {"best_ms", best},
          {"sync_plan_s", sync_s},
          {"trials", trials},
          {"database_bytes", fs::file_size(file)}};
}

}  // namespace

int main(int argc, char** argv) {
  const i64 trials = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 1000000;
  if (trials < 1) return std::fputs("usage: store_bench [TRIALS]\n", stderr), 2;
  const fs::path dir = fs::temp_directory_path() / ("store-bench-" + std::to_string(::getpid()));
  int code = 0;
  try {
    fs::create_directories(dir);
    std::puts(measure(dir, trials).dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "store_bench: %s\n", error.what());
    code = 1;
  }
  std::error_code ignored;
  fs::remove_all(dir, ignored);
  return code;
}
