#include "orchestrator/driver/wrapped.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/number_in.h"
#include "base/process.h"
#include "base/utf8.h"
#include "orchestrator/driver/machine.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/driver/spool_root.h"
#include "orchestrator/driver/sweep_driver.h"
#include "orchestrator/interop/known_options.h"
#include "schema/codec.h"
#include "schema/command_spec.h"
#include "schema/spool.h"
#include "schema/sweep_options.h"

namespace sweep::driver {
namespace {

constexpr i64 kMostSteps = 1000;  // steps kept of a run of unknown length
constexpr const char* kQuestion = "One run of a command (sweep wrap)";  // a sweep of runs is known by it

std::string word_of(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '{' || c == '}' ? 2 : 1, c);
  return nlohmann::json(out).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The command line in quotes, as an expression has it: a label that distinguishes the runs of one sweep.
std::string label_of(const std::vector<std::string>& words) {
  constexpr std::size_t kLongest = 1000;
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  out = safe_text(out.substr(0, kLongest));
  std::ranges::replace(out, '"', '\'');
  return nlohmann::json('"' + out + '"').dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Its last word that looks like a script, else its program.
std::string name_of(const std::vector<std::string>& words) {
  std::filesystem::path best = words.front();
  for (const std::string& word : words)
    if (word.ends_with(".py") || word.ends_with(".sh")) best = word;
  std::string out = "wrap-";
  for (const char c : best.stem().string()) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return out.substr(0, 60);
}

bool is_launcher(const std::vector<std::string>& words) {
  const std::string program = std::filesystem::path(words.front()).filename();
  return program == "torchrun" || program == "accelerate" || program == "deepspeed" ||
         std::ranges::any_of(words, is_launcher_module);
}

// How many ranks the command starts on this node, by its launcher's options; 1: they do not say.
i64 ranks_of(const std::vector<std::string>& words) {
  if (!is_launcher(words)) return 1;
  for (std::size_t i = 1; i < words.size() && !words[i].ends_with(".py"); ++i) {
    const auto equals = words[i].find('=');
    const auto named = interop::rank_name_of_option(words[i].substr(0, equals));
    if (!words[i].starts_with("--") || (named != "gpus_per_node" && named != "world")) continue;
    const std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : "";
    if (const auto ranks = number_in<i64>(value).value_or(0); ranks > 0) return ranks;
  }
  return 1;
}

// Writes a grid, so that what a grid refuses is refused, and `best --yaml` and a later edit start from one.
std::string grid_of(const WrapRequest& request, i64 ranks) {
  std::string words;
  for (const std::string& word : request.words) words += (words.empty() ? "" : ", ") + word_of(word);
  std::string out = fmt::format("name: {}\nworkload:\n  command: [{}]\n  processes: {}\n",
                                request.name.empty() ? name_of(request.words) : request.name, words,
                                request.processes == 1 ? "per_node" : "per_rank");
  // A launcher may start ranks that its words do not tell, or more than this machine has slots for.
  if (ranks == 1 && request.processes == 1) out += "  env: {SWEEP_ANY_WORLD: \"1\"}\n";
  out += fmt::format("derive: {{command_line: {}}}\n", label_of(request.words));
  out += fmt::format("base: {{hardware: {}, gpus_per_node: {}}}\nmeasure: {{warmup_steps: 0, steps: {}}}\n",
                     nlohmann::json(request.hardware).dump(), ranks, kMostSteps);
  out += "limits: {retries_crash: 0, retries_infra: 0";
  if (request.hang_seconds) out += fmt::format(", hang_seconds: {}", *request.hang_seconds);
  if (request.start_seconds) out += fmt::format(", start_seconds: {}", *request.start_seconds);
  if (request.trial_seconds) out += fmt::format(", trial_seconds: {}", *request.trial_seconds);
  return out + "}\n";
}

store::SweepRow sweep_row(const Planned& planned) {
  SweepOptions options;
  options.launcher = "local";
  options.launch = LaunchSettings();
  options.measure = planned.grid.measure;
  options.retries_crash = options.retries_hang = options.retries_timeout = options.retries_infra = 0;
  options.hang_seconds = planned.grid.limits.hang_seconds;
  options.start_seconds = planned.grid.limits.start_seconds;
  options.trial_seconds = planned.grid.limits.trial_seconds;
  store::SweepRow out;
  out.name = planned.grid.name;
  out.question = kQuestion;
  out.grid_text = planned.grid.text;
  out.options = std::move(options);
  return out;
}

// 0: there is none.
Expected<i64> last_attempt(SweepDriver& driver, const std::string& trial) {
  SWEEP_GET(const auto attempts, driver.store().attempts(driver.sweep().id, trial));
  return attempts.empty() ? 0 : attempts.back().id;
}

// Adds the result of the last attempt, unless it is of an earlier run.
Expected<void> add_result(SweepDriver& driver, i64 earlier, WrapReport& out) {
  SWEEP_GET(const auto attempts, driver.store().attempts(driver.sweep().id, out.trial));
  if (attempts.empty() || attempts.back().id == earlier) return {};
  const auto& last = attempts.back();
  SWEEP_GET(auto result, driver.store().result_of(last.id));
  out.result = std::move(result);
  out.log = spool::rank_log(spool::attempt_dir(spool_root_of(driver.db()) / last.allocation, last.id), 0);
  return {};
}

Expected<Planned> plan_with(const WrapRequest& request, i64 ranks) {
  SWEEP_GET(auto grid, grid::read_text(grid_of(request, ranks), "wrap"));
  auto planned = plan_of(std::move(grid));
  if (planned) prune_beyond(*planned, local_resources());
  return planned;
}

// A launcher may start more ranks than this machine has slots for: the first one is followed then.
Expected<Planned> plan_wrapped(const WrapRequest& request) {
  if (request.processes > 1) return plan_with(request, request.processes);
  const i64 ranks = ranks_of(request.words);
  auto planned = plan_with(request, ranks);
  return ranks == 1 || (planned && planned->entries.front().admitted) ? planned : plan_with(request, 1);
}

Expected<void> check_words(const std::vector<std::string>& words) {
  if (words.empty())
    return fail("there is no command; say it after --, as in `sweep wrap -- python train.py`");
  const auto bad = std::ranges::find_if_not(words, is_utf8);
  if (bad == words.end()) return {};
  return fail(
      ErrorKind::kUnsupported, safe_text(*bad),
      fmt::format("the argument {} is no UTF-8, and the database keeps nothing else: put the command into a "
                  "script",
                  safe_text(*bad)));
}

// A sweep of a grid keeps its grid and its options.
Expected<void> check_name(SweepDriver& driver, const std::string& name, const std::string& db) {
  const auto known = driver.store().find_sweep(name);
  if (!known || known->question == kQuestion) return {};
  return fail(
      ErrorKind::kConflict, name,
      fmt::format("{} has a sweep {} that `sweep wrap` did not make, and keeps its grid and options; choose "
                  "another --name",
                  db, name));
}

}  // namespace

Expected<WrapReport> run_wrapped(const WrapRequest& request, const MakeObserver& make_observer) {
  SWEEP_TRY(check_words(request.words));
  SWEEP_GET(auto planned, plan_wrapped(request));
  const PlanEntry& entry = planned.entries.front();
  if (!entry.admitted) return fail(fmt::format("it cannot run here: {}", entry.reason));
  LaunchRequest launch = request.launch;
  launch.on = "local";
  // No rank of sweep's own is started: the agent alone is enough.
  const auto programs = program_paths(launch);
  if (launch.rank.empty() && !std::filesystem::exists(programs.rank)) launch.rank = programs.agent.string();
  SWEEP_GET(const auto choice, choose_launcher({}, launch));
  SWEEP_GET(auto driver, SweepDriver::open(request.db));
  SWEEP_TRY(check_name(driver, planned.grid.name, request.db));
  SWEEP_TRY(driver.make(sweep_row(planned)));
  SWEEP_GET(const auto earlier, last_attempt(driver, entry.id));
  const auto run = run_with_lease(driver, {planned.entries, planned.grid.measure, outcomes_of_runs(), true},
                                  [&](SweepDriver& own) { return own.run(choice, launch, make_observer); });
  if (!run) return tl::unexpected(run.error().error);
  WrapReport out{planned.grid.name, entry.id, run->end, std::nullopt, {}};
  SWEEP_TRY(add_result(driver, earlier, out));
  return out;
}

}  // namespace sweep::driver
