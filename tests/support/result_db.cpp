// Makes a results database for tests, through the store: result_db OUT.db SWEEP QUESTION ROWS.jsonl
// [FACTS.json] A line: {"trial": {...}, "outcome": "ok", "reason": "", "evidence": "", "metrics": {...},
// "effective": {...}, "records": [rank records], "exits": [rank exits], "end": {attempt end}}; the outcome "pending" leaves a trial without a result, "pruned" and "unsupported" are
// the plan's word. Keys are those of schema/codec.h. FACTS.json: the facts of the one node. A database that
// is there gets one more sweep.
#include <sqlite3.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "orchestrator/run/retry_policy.h"
#include "orchestrator/store/store.h"
#include "schema/codec.h"
#include "tests/support/must.h"

namespace {

using namespace sweep;

struct Line {
  PlanEntry entry;
  Result result;
  std::vector<RankRecord> records;
  std::vector<RankExit> exits;
  std::optional<AttemptEnd> end;
  bool run = false;
};

Line read_line(const std::string& text, i64 order) {
  const auto json = must(parse_json(text));
  Line line;
  line.entry.trial = must(from_json<Trial>(json.at("trial")));
  line.entry.id = trial_id(line.entry.trial);
  line.entry.order = order;
  const std::string outcome = json.value("outcome", "ok");
  line.run = outcome != "pending" && outcome != "pruned" && outcome != "unsupported";
  if (outcome == "pruned" || outcome == "unsupported") {
    line.entry.admitted = false;
    line.entry.verdict = *outcome_from(outcome);
    line.entry.rule = json.value("rule", "where");
    line.entry.reason = json.value("reason", "");
  }
  if (!line.run) return line;
  Result& r = line.result;
  r.trial_id = line.entry.id;
  r.outcome = outcome_from(outcome).value();
  if (r.outcome == Outcome::kOom) r.oom_kind = OomKind::kDevice;
  r.reason = json.value("reason", ""), r.phase = phase_from(json.value("phase", ""));
  if (const std::string text = json.value("evidence", ""); !text.empty())
    r.evidence = must(from_text<Evidence>(text));
  r.metrics = must(from_json<Metrics>(json.value("metrics", nlohmann::json::object())));
  r.finished_unix_ns = 1'790'000'000'000'000'000 + order * 1'000'000'000;
  if (json.contains("effective")) {
    line.records.emplace_back().outcome = r.outcome;
    line.records.back().effective = must(from_json<EffectiveSettings>(json["effective"]));
  }
  for (const auto& one : json.value("records", nlohmann::json::array()))
    line.records.push_back(must(from_json<RankRecord>(one)));
  for (const auto& one : json.value("exits", nlohmann::json::array()))
    line.exits.push_back(must(from_json<RankExit>(one)));
  if (json.contains("end")) line.end = must(from_json<AttemptEnd>(json["end"]));
  return line;
}

// Attempts are begun one by one in a run, each in a transaction of its own; here all at once.
std::map<std::string, i64> begin_all(const std::string& file, i64 sweep, const std::string& allocation) {
  sqlite3* db = nullptr;
  sqlite3_open(file.c_str(), &db);
  const std::string s = std::to_string(sweep);
  const std::string sql =
      "INSERT INTO attempt(entry, allocation, state, world, request, posted_unix_ns) SELECT p.key, '" +
      allocation +
      "', 1, t.dp * t.tp * t.pp * t.cp, '{}', 0 FROM plan_entry p JOIN trial t ON t.key = p.trial WHERE "
      "p.admitted "
      "AND p.sweep = " +
      s + "; UPDATE plan_entry SET state = 1, attempts = 1 WHERE admitted AND sweep = " + s;
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(db));
  std::map<std::string, i64> ids;
  sqlite3_stmt* rows = nullptr;
  const std::string ask =
      "SELECT t.id, a.id FROM attempt a JOIN plan_entry p ON p.key = a.entry JOIN trial t ON "
      "t.key = p.trial WHERE p.sweep = " +
      s;
  sqlite3_prepare_v2(db, ask.c_str(), -1, &rows, nullptr);
  while (sqlite3_step(rows) == SQLITE_ROW)
    ids[reinterpret_cast<const char*>(sqlite3_column_text(rows, 0))] = sqlite3_column_int64(rows, 1);
  sqlite3_finalize(rows);
  sqlite3_close(db);
  return ids;
}

void store_results(store::Store& store, const std::string& allocation, const std::vector<Line>& lines,
                   const std::map<std::string, i64>& attempts, const std::string& facts) {
  store::IngestBatch batch;
  batch.allocation = allocation;
  batch.nodes.push_back({0, "node-a", must(from_text<NodeFacts>(facts))});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].run) continue;
    const i64 id = attempts.at(lines[i].entry.id);
    batch.results.push_back(lines[i].result);
    batch.results.back().attempt = id;
    const auto add = [&](auto one, auto& to) {
      one.attempt = id;
      to.push_back(std::move(one));
    };
    for (const RankRecord& record : lines[i].records) add(record, batch.rank_records);
    for (const RankExit& exit : lines[i].exits) add(exit, batch.rank_exits);
    if (lines[i].end) add(*lines[i].end, batch.ends);
  }
  batch.new_offset = 1;
  must(store.ingest(batch));
}

void make(char** argv, const std::string& facts) {
  std::ifstream in(argv[4], std::ios::binary);
  std::vector<Line> lines;
  std::vector<PlanEntry> plan;
  for (std::string text; std::getline(in, text);) {
    if (text.empty()) continue;
    lines.push_back(read_line(text, static_cast<i64>(lines.size())));
    plan.push_back(lines.back().entry);
  }
  auto store = must(run::open_store(argv[1], store::Mode::kReadWrite));
  store::SweepRow row;
  row.name = argv[2], row.question = argv[3], row.grid_path = "grid.yaml";
  row.grid_text = "name: " + row.name + "\n# the grid as it was given\n";
  const i64 sweep = must(store->ensure_sweep(row)).id;
  must(store->sync_plan(sweep, plan, {}));
  must(store->take_lease(sweep));
  const std::string allocation = must(store->create_allocation(sweep, "local", "spool")).id;
  const auto attempts = begin_all(argv[1], sweep, allocation);
  store_results(*store, allocation, lines, attempts, facts);
  must(store->end_allocation(allocation, "done"));
  must(store->release_lease(sweep));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return std::cerr << "usage: result_db OUT.db SWEEP QUESTION ROWS.jsonl [FACTS.json]\n", 2;
  try {
    std::string facts = "{}";
    if (argc > 5) {
      std::ifstream in(argv[5], std::ios::binary);
      facts.assign(std::istreambuf_iterator<char>(in), {});
    }
    make(argv, facts);
  } catch (const std::exception& error) {
    std::cerr << "result_db: " << error.what() << "\n";
    return 1;
  }
}
