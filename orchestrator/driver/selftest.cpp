#include "orchestrator/driver/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/expected.h"
#include "orchestrator/grid/grid.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/sweep_options.h"

namespace sweep::driver {
namespace {

constexpr double kPredictedSeconds = 5;
const MeasurePlan kMeasure{0, 3, 1};  // three steps, none of them to warm up

std::vector<PlanEntry> entries_of(const std::vector<Trial>& trials) {
  std::vector<PlanEntry> entries;
  for (const Trial& trial : trials) {
    PlanEntry entry;
    entry.trial = trial;
    entry.id = trial_id(trial);
    entry.predicted.seconds = kPredictedSeconds;
    entry.order = static_cast<i64>(entries.size());
    entry.source = "built in";
    entries.push_back(std::move(entry));
  }
  return entries;
}

void append_once(std::vector<std::string>& all, const nlohmann::json& answer, const char* key) {
  if (!answer.contains(key) || !answer[key].is_array()) return;
  for (const auto& sentence : answer[key])
    if (sentence.is_string() && std::find(all.begin(), all.end(), sentence.get<std::string>()) == all.end())
      all.push_back(sentence.get<std::string>());
}

void keep_largest(double& kept, const nlohmann::json& answer, const char* key) {
  const double value = answer.contains(key) && answer[key].is_number() ? answer[key].get<double>() : 1e30;
  kept = std::max(kept, value);  // what is not a number is no small distance
}

Expected<std::string> hosts_of(store::Store& store, const std::string& allocation) {
  const auto rows =
      store.query("SELECT host FROM environment WHERE allocation = '" + allocation + "' ORDER BY node");
  if (!rows) return tl::unexpected(rows.error());
  std::string names;
  for (const auto& row : rows->rows)
    if (const auto* host = std::get_if<std::string>(&row[0])) names += (names.empty() ? "" : ", ") + *host;
  return names;
}

Expected<std::optional<SelfTestOutcome>> outcome_of(store::Store& store, i64 sweep, const std::string& id) {
  const auto final = store.final_attempt(sweep, id);
  if (!final) return tl::unexpected(final.error());
  if (!*final) return std::optional<SelfTestOutcome>();
  const auto result = store.result_of(**final);
  const auto testimony = store.testimony(**final);
  if (!result) return tl::unexpected(result.error());
  if (!testimony) return tl::unexpected(testimony.error());
  if (!*result) return std::optional<SelfTestOutcome>();
  SelfTestOutcome found;
  found.outcome = (*result)->outcome, found.reason = (*result)->reason;
  bool first = true;
  if (found.outcome == Outcome::kOk)
    for (const auto& record : testimony->records) add_rank(found, record, std::exchange(first, false));
  const auto attempts = store.attempts(sweep, id);
  if (!attempts) return tl::unexpected(attempts.error());
  for (const auto& attempt : *attempts)
    if (attempt.id == **final) {
      auto hosts = hosts_of(store, attempt.allocation);
      if (!hosts) return tl::unexpected(hosts.error());
      found.hosts = std::move(*hosts);
    }
  return std::optional<SelfTestOutcome>(std::move(found));
}

store::SweepRow sweep_row(const std::string& name, const std::string& launcher, const std::string& section) {
  SweepOptions options;
  options.launcher = launcher;
  options.launch = section;
  options.measure = kMeasure;
  options.retries_crash = options.retries_infra = 0;
  store::SweepRow out;
  out.name = name;
  out.options_json = to_text(options);
  return out;
}

}  // namespace

void add_rank(SelfTestOutcome& found, const RankRecord& record, bool first) {
  const auto used = parse_json(record.effective);
  const nlohmann::json none = nlohmann::json::object();
  const nlohmann::json& answer =
      used && used->is_object() && used->contains("proof") ? (*used)["proof"] : none;
  const double before = found.gradient;
  keep_largest(found.loss, answer, "loss");
  keep_largest(found.gradient, answer, "gradient");
  keep_largest(found.value, answer, "value");
  if (found.gradient > before && answer.contains("worst")) found.worst = text_of(answer, "worst");
  const bool exact = flag_of(answer, "exact");
  found.bytes_exact = first ? exact : found.bytes_exact && exact;
  const double peak = number_of(answer, "peak_bytes"), dry = number_of(answer, "dry_bytes");
  if (dry > 0) found.bytes_off = std::max(found.bytes_off, std::abs(peak - dry) / dry);
  append_once(found.bytes, answer, "bytes");
  append_once(found.traffic, answer, "traffic");
  append_once(found.collectives, answer, "collectives");
}

Expected<std::string> launch_section_of(const std::string& grid) {
  if (grid.empty()) return std::string("{}");
  const auto read = grid::read_file(grid);
  if (!read) return tl::unexpected(read.error());
  return read->launch.empty() ? "{}" : read->launch;
}

bool passed(const SelfTestOutcome& found, const Tolerance& allowed) {
  return found.outcome == Outcome::kOk && found.loss <= allowed.loss && found.gradient <= allowed.gradient &&
         found.value <= allowed.value && found.bytes.empty() && found.traffic.empty() &&
         found.collectives.empty();
}

Expected<SelfTestReport> run_selftests(const SelfTestRequest& request, const std::string& name,
                                       const std::vector<Trial>& trials, const MakeObserver& make_observer) {
  const auto section = launch_section_of(request.grid);
  if (!section) return tl::unexpected(section.error());
  const auto choice = choose_launcher(*section, request.launch);
  if (!choice) return tl::unexpected(choice.error());
  auto driver = SweepDriver::open(request.db);
  if (!driver) return tl::unexpected(driver.error());
  SWEEP_TRY(driver->make(sweep_row(name, choice->on, *section)));
  const auto entries = entries_of(trials);
  const auto report = run_errand(*driver, {entries, kMeasure, outcomes_of_runs()}, [&](SweepDriver& own) {
    return own.run(*choice, request.launch, std::nullopt, make_observer);
  });
  if (!report && report.error().problem == DriveProblem::kBusy)
    return fail(
        fmt::format("the selftest in {} is already under way: {}", request.db, report.error().error.message));
  if (!report) return tl::unexpected(report.error().error);
  SelfTestReport out;
  for (const PlanEntry& entry : entries) {
    auto found = outcome_of(driver->store(), driver->sweep().id, entry.id);
    if (!found) return tl::unexpected(found.error());
    if (*found) out.outcomes.emplace(entry.id, std::move(**found));
  }
  if (report->end.end != run::End::kDone) out.why = report->end.why;
  if (!report->hosts.empty()) out.hosts = report->hosts.rbegin()->second;
  return out;
}

}  // namespace sweep::driver
