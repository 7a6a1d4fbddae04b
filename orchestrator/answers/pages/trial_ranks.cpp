// A trial's ranks: what each reported and how its process ended, and the settings that they really used.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/pages/trial_parts.h"
#include "orchestrator/answers/statistics/time_parts.h"
#include "schema/codec.h"

namespace sweep::answers::parts {
namespace {

constexpr std::size_t kMostRows = 64, kNamedRanks = 12;

struct RankRow {
  i64 rank = 0;
  const RankRecord* record = nullptr;
  const RankExit* exit = nullptr;
  bool fine() const { return record && record->outcome == Outcome::kOk; }
};

// The rows are in the order of ranks; of many, those that did not end well come first.
std::vector<RankRow> rank_rows(const store::StoredRecords& records) {
  std::map<i64, RankRow> by_rank;
  for (const RankRecord& record : records.records) by_rank[record.rank].record = &record;
  for (const RankExit& exit : records.exits) by_rank[exit.rank].exit = &exit;
  std::vector<RankRow> out;
  for (auto& [rank, row] : by_rank) {
    row.rank = rank;
    out.push_back(row);
  }
  if (out.size() > kMostRows)
    std::stable_partition(out.begin(), out.end(), [](const RankRow& row) { return !row.fine(); });
  return out;
}

Value bytes_cell(const std::optional<i64>& bytes) {
  return bytes ? Value{human_bytes(static_cast<double>(*bytes))} : Value{};
}
Value ms_cell(const std::optional<double>& ms) {
  return ms ? Value{significant(*ms)} : Value{};
}
template <class T>
Value count_cell(const std::optional<T>& count) {
  return count ? Value{static_cast<i64>(*count)} : Value{};
}

Value exit_cell(const RankExit* exit) {
  if (!exit) return {};
  std::string out = exit->signal      ? fmt::format("signal {}", *exit->signal)
                    : exit->exit_code ? fmt::format("code {}", *exit->exit_code)
                                      : "";
  if (exit->oom_killed) out += ", OOM killer";
  if (exit->killed_by_agent) out += ", ended by the agent";
  return out.empty() ? Value{} : Value{out};
}

std::optional<i64> sent_bytes(const RankRecord& record) {
  if (record.sent.empty()) return std::nullopt;
  i64 out = 0;
  for (const SentTraffic& each : record.sent) out += each.bytes;
  return out;
}

std::vector<Value> cells_of(const RankRow& row, bool pipeline) {
  std::vector<Value> out(15);
  out[0] = row.rank, out[13] = exit_cell(row.exit);
  if (!row.record) return out;
  const RankRecord& r = *row.record;
  const Metrics times = rank_times(r, pipeline);
  out[1] = std::string(to_string(r.outcome)) +
           (r.phase && !row.fine() ? fmt::format(" in {}", to_string(*r.phase)) : "");
  out[2] = ms_cell(times.step_ms), out[3] = ms_cell(times.forward_ms), out[4] = ms_cell(times.backward_ms);
  out[5] = ms_cell(times.exposed_comm_ms), out[6] = ms_cell(times.optimizer_ms);
  out[7] = bytes_cell(r.peak_allocated_bytes), out[8] = bytes_cell(r.peak_reserved_bytes);
  out[9] = bytes_cell(r.host_peak_rss_bytes), out[10] = count_cell(r.cpu_percent),
  out[11] = count_cell(r.alloc_retries);
  out[12] = bytes_cell(sent_bytes(r));
  if (!r.message.empty()) out[14] = safe_text(r.message);
  return out;
}

// Columns that no row has a value in say nothing.
Table without_empty(Table table) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (std::ranges::any_of(table.rows, [&](const auto& row) { return row[c].index() != 0; })) continue;
    table.columns.erase(table.columns.begin() + std::ptrdiff_t(c));
    for (auto& row : table.rows) row.erase(row.begin() + std::ptrdiff_t(c));
  }
  return table;
}

// The settings of a rank that its peers may share: its GPUs, cores and counts are its own.
nlohmann::json shared_settings(const EffectiveSettings& used) {
  auto out = to_json(used);
  for (const char* own : {"devices", "cores", "phantom", "proof", "calibration", "screen"}) out.erase(own);
  if (out.contains("nccl") && out["nccl"].is_object()) out["nccl"].erase("rank");
  if (used.device)
    out["device"] = used.device->substr(0, used.device->find(':'));  // "cuda:3" is the rank's own
  return out;
}

std::string ranks_text(const std::vector<i64>& ranks, std::size_t all) {
  if (ranks.size() == all) return all == 1 ? "Rank 0" : fmt::format("All {} ranks", all);
  std::string out = ranks.size() == 1 ? "Rank" : "Ranks";
  for (std::size_t i = 0; i < std::min(kNamedRanks, ranks.size()); ++i)
    out += fmt::format("{} {}", i > 0 ? "," : "", ranks[i]);
  return ranks.size() > kNamedRanks ? out + fmt::format(", ... ({})", ranks.size()) : out;
}

}  // namespace

std::string ranks(const TrialPage& page) {
  Table table;
  table.columns = {"rank",        "outcome",        "step [ms]",      "forward [ms]",  "backward [ms]",
                   "waited [ms]", "optimizer [ms]", "peak allocated", "peak reserved", "host memory",
                   "CPU [%]",     "retries",        "sent in a step", "process",       "message"};
  const auto rows = rank_rows(page.records);
  for (std::size_t i = 0; i < std::min(kMostRows, rows.size()); ++i)
    table.rows.push_back(cells_of(rows[i], page.view.entry.trial.pp > 1));
  if (table.rows.empty()) return "";
  std::string out = html_table(without_empty(std::move(table)), Names({}));
  if (rows.size() > kMostRows)
    out += paragraph(
        fmt::format("{} more ranks; table `rank_record` of the database has all.", rows.size() - kMostRows));
  return out;
}

std::string nodes(const TrialPage& page) {
  Table table;
  table.columns = {"node", "host", "device", "slowest rank", "computes [ms]", "waits [ms]"};
  for (const NodeTime& each : page.view.nodes)
    table.rows.push_back({each.node, safe_text(each.host), each.device, each.rank, significant(each.own_ms),
                          significant(each.waited_ms)});
  if (table.rows.empty()) return "";
  const std::string slower = slower_kind(page.view.entry.trial, page.view.nodes);
  return html_table(table, Names({})) +
         (slower.empty() ? "" : paragraph("Of the kinds of device " + slower + "."));
}

std::string effective_settings(const TrialPage& page) {
  std::map<std::string, std::vector<i64>> groups;
  for (const RankRecord& record : page.records.records)
    groups[dump(shared_settings(record.effective))].push_back(record.rank);
  std::string out;
  for (const auto& [text, of] : groups) {
    Table table;
    table.columns = {"setting", "value"};
    const auto settings = nlohmann::json::parse(text, nullptr, false);
    for (const auto& [key, value] : settings.items())
      table.rows.push_back(
          {key, value.is_string() ? safe_text(value.get<std::string>()) : safe_text(dump(value))});
    if (table.rows.empty()) continue;
    out += fmt::format("<h3>{}</h3>\n", ranks_text(of, page.records.records.size())) +
           html_table(table, Names({}));
  }
  return out;
}

}  // namespace sweep::answers::parts
