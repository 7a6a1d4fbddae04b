#include "orchestrator/cli/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/expected.h"
#include "orchestrator/cli/driving.h"
#include "orchestrator/cli/holder.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/run/retry_policy.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/sweep_options.h"

namespace sweep::cli {
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

void add_rank(Found& found, const RankRecord& record, bool first) {
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

Expected<std::string> hosts_of(store::Store& store, const std::string& allocation) {
  const auto nodes = store.nodes_of(allocation);
  if (!nodes) return tl::unexpected(nodes.error());
  std::string names;
  for (const auto& node : *nodes) names += (names.empty() ? "" : ", ") + node.host;
  return names;
}

Expected<std::optional<Found>> found_of(store::Store& store, i64 sweep, const std::string& id) {
  const auto final = store.final_attempt(sweep, id);
  if (!final) return tl::unexpected(final.error());
  if (!*final) return std::optional<Found>();
  const auto result = store.result_of(**final);
  const auto testimony = store.testimony(**final);
  if (!result) return tl::unexpected(result.error());
  if (!testimony) return tl::unexpected(testimony.error());
  if (!*result) return std::optional<Found>();
  Found found;
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
  return std::optional<Found>(std::move(found));
}

}  // namespace

Expected<std::string> launch_section_of(const std::string& grid) {
  if (grid.empty()) return std::string("{}");
  const auto read = grid::read_file(grid);
  if (!read) return tl::unexpected(read.error());
  return read->launch.empty() ? "{}" : read->launch;
}

bool passed(const Found& found, const Tolerance& allowed) {
  return found.outcome == Outcome::kOk && found.loss <= allowed.loss && found.gradient <= allowed.gradient &&
         found.value <= allowed.value && found.bytes.empty() && found.traffic.empty() &&
         found.collectives.empty();
}

void add_selftest_options(CLI::App& c, SelfTestRequest& request) {
  c.add_option("--on", request.launch.on,
               "where to run: local, ssh or slurm; absent: as `sweep run` would choose")
      ->check(CLI::IsMember({"local", "slurm", "ssh"}));
  c.add_option("--grid", request.grid, "a grid file whose launch section is used")->type_name("FILE");
  c.add_option("--jobid", request.launch.job, "use the nodes of this Slurm allocation")
      ->check(CLI::PositiveNumber);
  c.add_option("--start", request.launch.start, "how ranks start: zygote (forked, fast) or exec")
      ->check(CLI::IsMember({"zygote", "exec"}))
      ->capture_default_str();
  c.add_option("--agent", request.launch.agent, "the sweep-agent program; absent: beside sweep")
      ->type_name("FILE");
  c.add_option("--rank", request.launch.rank, "the sweep-rank program; absent: beside sweep")
      ->type_name("FILE");
}

Expected<Proved> run_selftests(Io& io, const SelfTestRequest& request, const std::string& name,
                               const std::vector<Trial>& trials) {
  const auto section = launch_section_of(request.grid);
  if (!section) return tl::unexpected(section.error());
  const auto choice = choose_launcher(*section, request.launch);
  if (!choice) return tl::unexpected(choice.error());
  std::error_code ec;
  std::filesystem::create_directories(std::filesystem::absolute(request.db).parent_path(), ec);
  auto store = run::open_store(request.db, store::Mode::kReadWrite);
  if (!store) return tl::unexpected(store.error());
  store::SweepRow wanted;
  wanted.name = name;
  SweepOptions options;
  options.launcher = choice->on;
  options.launch = *section;
  options.measure = kMeasure;
  options.retries_crash = options.retries_infra = 0;
  wanted.options_json = to_text(options);
  const auto sweep = (*store)->ensure_sweep(wanted);
  if (!sweep) return tl::unexpected(sweep.error());
  const auto holder = (*store)->take_lease(sweep->id);
  if (!holder) return tl::unexpected(holder.error());
  if (*holder)
    return fail(
        fmt::format("the proofs in {} are already under way: {}", request.db, standing_text(**holder)));
  const auto entries = entries_of(trials);
  const auto counts = (*store)->sync_plan(sweep->id, entries, kMeasure);
  if (!counts) return tl::unexpected(counts.error());
  const std::vector<Outcome> all{Outcome::kOk,          Outcome::kOom,      Outcome::kHang,
                                 Outcome::kTimeout,     Outcome::kCrash,    Outcome::kInvalid,
                                 Outcome::kUnsupported, Outcome::kNodeLost, Outcome::kCancelled};
  SWEEP_TRY((*store)->reopen(sweep->id, all));
  LaunchRequest launch = request.launch;
  launch.on = choice->on;
  if (launch.on == "slurm" && launch.job == 0) launch.job = choice->existing_job;
  const auto end = run_pending(io, **store, request.db, *sweep, launch, request.quiet);
  Proved out;
  for (const PlanEntry& entry : entries) {
    auto found = end ? found_of(**store, sweep->id, entry.id) : tl::unexpected(end.error());
    if (!found) {
      (void)(*store)->release_lease(sweep->id);
      return tl::unexpected(found.error());
    }
    if (*found) out.found.emplace(entry.id, std::move(**found));
  }
  SWEEP_TRY((*store)->release_lease(sweep->id));
  if (end->end != run::End::kDone) out.why = end->why;
  return out;
}

}  // namespace sweep::cli
