#include "orchestrator/driver/launchers.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/driver/machine.h"
#include "orchestrator/grid/site.h"

namespace sweep::driver {
namespace {

namespace fs = std::filesystem;

Expected<std::string> named_by(const LaunchSettings& settings) {
  const auto named = launchers_in(settings);
  if (named.size() > 1)
    return fail("the grid's launch section names several launchers; choose one with --on");
  return named.empty() ? std::string() : named.front();
}

// The job whose nodes are used where nothing names a launcher, and the launcher that it belongs to.
const LauncherEntry* entry_with_job(i64 asked, i64& job) {
  for (const auto& entry : launchers()) {
    if (entry.surrounding_job == nullptr) continue;
    job = asked > 0 ? asked : entry.surrounding_job();
    if (job > 0) return &entry;
  }
  return nullptr;
}

struct Named {
  const LauncherEntry* entry = nullptr;
  i64 job = 0;
};

Expected<Named> named_launcher(const LaunchSettings& settings, const LaunchRequest& request) {
  Named out;
  std::string name = request.on;
  if (name.empty()) {
    SWEEP_GET(name, named_by(settings));
    if (name.empty() && (out.entry = entry_with_job(request.job, out.job)) != nullptr) return out;
  }
  out.entry = name.empty() ? &launchers().front() : find_launcher(name);
  if (out.entry == nullptr) return fail(fmt::format("there is no launcher '{}'", name));
  if (out.entry->surrounding_job == nullptr) return out;
  out.job = request.job;
  if (request.on.empty() && out.job == 0) out.job = out.entry->surrounding_job();
  return out;
}

// GPUs of a node and who says so: what the launcher asks for, else the catalogue.
std::optional<launch::KnownGpus> gpus_of_node(const launch::LaunchConfig& config,
                                              const std::string& hardware) {
  if (hardware == "cpu") return std::nullopt;
  if (auto asked = config.gpus_of_node(hardware)) return asked;
  const auto known = shape::find_hardware(hardware);
  if (!known || known->gpu.empty()) return std::nullopt;
  return launch::KnownGpus{known->gpus_per_node, "the catalogue; `gres` says what a node of yours has"};
}

RankStart start_of(const LaunchRequest& request) {
  return request.start.value_or(RankStart::kZygote);
}

Expected<void> are_there(const launch::Programs& programs) {
  if (!fs::exists(programs.agent))
    return fail(ErrorKind::kNotFound, programs.agent.string(),
                fmt::format("{}: not found, and no sweep-agent is on the PATH; it belongs beside `sweep`: "
                            "install the wheel again, build the target sweep-agent, or name one with --agent",
                            programs.agent.string()));
  if (!programs.rank.empty() && !fs::exists(programs.rank))
    return fail(ErrorKind::kNotFound, programs.rank.string(),
                fmt::format("{}: not found, and no sweep-rank is on the PATH; it runs the built-in training "
                            "step (trials that are commands need none): install the wheel sweep-bench-rank, "
                            "build it (scripts/quickstart does), or name one with --rank",
                            programs.rank.string()));
  return {};
}

}  // namespace

Expected<LaunchChoice> choose_launcher(const LaunchSettings& settings, const LaunchRequest& request) {
  SWEEP_GET(const auto named, named_launcher(settings, request));
  SWEEP_GET(const auto site, grid::read_site(grid::site_files()));
  LaunchChoice choice;
  choice.on = named.entry->name;
  choice.existing_job = named.job;
  SWEEP_GET(auto config, named.entry->configure(merged(site.launch, settings), choice.existing_job));
  choice.config = std::move(config);
  choice.gpu_hours = site.gpu_hours;
  choice.usd_per_node_hour = site.usd_per_node_hour;
  choice.checkpoint_folder = site.checkpoint_folder;
  for (const auto& file : site.files) choice.sites += (choice.sites.empty() ? "" : ", ") + file.string();
  return choice;
}

LaunchRequest with_kept(LaunchRequest request, const SweepOptions& kept) {
  if (request.on.empty()) request.on = kept.launcher.empty() ? launchers().front().name : kept.launcher;
  if (request.slots == 0) request.slots = kept.slots.value_or(0);
  if (!request.start) request.start = rank_start_from(kept.start);
  if (request.screen.empty()) request.screen = kept.screen;
  return request;
}

Expected<LaunchChoice> kept_launcher(const SweepOptions& kept, const LaunchRequest& request) {
  return choose_launcher(kept.launch.value_or(LaunchSettings()), with_kept(request, kept));
}

Expected<LaunchChoice> choose_script_launcher(const LaunchSettings& settings) {
  const auto named = launchers_in(settings);
  LaunchRequest request;
  for (const auto& entry : launchers())
    if (entry.has_scripts && (request.on.empty() || std::ranges::find(named, entry.name) != named.end()))
      request.on = entry.name;
  return choose_launcher(settings, request);
}

launch::Programs program_paths(const LaunchRequest& request) {
  return {request.agent.empty() ? launch::companion("sweep-agent") : fs::absolute(request.agent),
          request.rank.empty() ? launch::companion("sweep-rank") : fs::absolute(request.rank),
          start_of(request) == RankStart::kZygote};
}

Expected<launch::Programs> programs_for(const LaunchRequest& request, std::span<const PlanEntry> entries,
                                        const std::string& screen) {
  auto out = program_paths(request);
  out.screen = screen;
  if (screen.empty() && !has_built_in_steps(entries)) out.rank.clear();
  out.zygote = out.zygote && !out.rank.empty();
  SWEEP_TRY(are_there(out));
  return out;
}

bool has_built_in_steps(std::span<const PlanEntry> entries) {
  return std::ranges::any_of(entries, [](const PlanEntry& entry) {
    return entry.admitted && entry.trial.workload != Workload::kCommand;
  });
}

// A program starts as many threads as it likes: beside another one on the same cores its times say little.
bool runs_commands_on_cores(std::span<const PlanEntry> entries) {
  return std::ranges::any_of(entries, [](const PlanEntry& entry) {
    return entry.admitted && entry.trial.workload == Workload::kCommand && entry.trial.hardware == "cpu";
  });
}

Expected<void> slots_fit(const LaunchChoice& choice, const LaunchRequest& request,
                         const std::set<std::string>& hardware) {
  SWEEP_GET(const auto limit, choice.config->slot_limit(request.slots));
  if (limit.slots <= 1) return {};
  for (const auto& name : hardware) {
    const auto gpus = gpus_of_node(*choice.config, name);
    if (gpus && gpus->count < limit.slots)
      return fail(
          fmt::format("{} is {}, but a node of {} has {} GPUs (by {}): trials side by side need one for each "
                      "slot; make slots {} or fewer",
                      limit.setting, limit.slots, name, gpus->count, gpus->setting, gpus->count));
  }
  return {};
}

std::optional<std::string> ranks_beyond_cores(const LaunchChoice& choice,
                                              std::span<const PlanEntry> entries) {
  if (!choice.config->uses_this_machine()) return std::nullopt;
  i64 trials = 0, most = 0;
  for (const auto& entry : entries) {
    if (!entry.admitted || entry.trial.hardware != "cpu" || entry.trial.world() <= cpu_cores()) continue;
    ++trials;
    most = std::max(most, entry.trial.world());
  }
  if (trials == 0) return std::nullopt;
  return fmt::format("{} {} up to {} CPU ranks on the {} cores of this machine: their times will say little",
                     trials, trials == 1 ? "trial has" : "trials have", most, cpu_cores());
}

run::Bounds bounds_of(const launch::RunLimits& limits) {
  run::Bounds out;
  out.max_nodes = limits.max_nodes, out.max_allocations = limits.max_allocations;
  out.time_s = limits.time_s, out.most_nodes_each = limits.allocation_nodes;
  out.all_nodes = limits.all_nodes;
  out.spread_s = limits.spread_s.value_or(out.spread_s);
  out.min_work_per_node_s = limits.min_work_per_node_s.value_or(out.min_work_per_node_s);
  return out;
}

Expected<run::MakeLauncher> prepare_launcher(const LaunchChoice& choice, const LaunchRequest& request,
                                             std::span<const PlanEntry> entries, run::Settings& s) {
  const auto programs_here =
      programs_for(request, entries, request.screen.empty() ? choice.config->screen() : request.screen);
  if (!programs_here) return tl::unexpected(programs_here.error());
  const launch::Programs& programs = *programs_here;
  const auto limits =
      choice.config->prepare({request.slots, runs_commands_on_cores(entries) ? 1 : own_slots()});
  if (!limits) return tl::unexpected(limits.error());
  s.exclude_slow_hosts = programs.screen == "leave_out";
  s.launcher = choice.on;
  s.start = start_of(request);
  s.checkpoint_folder = choice.checkpoint_folder;
  s.usd_per_node_hour = choice.usd_per_node_hour;
  s.usd_per_node_hour.insert(limits->usd_per_node_hour.begin(), limits->usd_per_node_hour.end());
  const auto own_limit = s.gpu_hours;
  s.gpu_hours = smaller_limit(own_limit, choice.gpu_hours);
  s.limit_of_site = s.gpu_hours != own_limit;
  s.allocate_per_shape = limits->allocate_per_shape;
  s.slots = limits->slots;
  s.bounds = bounds_of(*limits);
  return run::MakeLauncher(
      [config = choice.config, programs](boost::asio::io_context& io, launch::Launcher::Sink sink) {
        return config->make(io, programs, std::move(sink));
      });
}

std::optional<double> smaller_limit(std::optional<double> one, std::optional<double> other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

std::set<std::string> hardware_of(std::span<const PlanEntry> entries) {
  std::set<std::string> out;
  for (const auto& entry : entries)
    if (entry.admitted) out.insert(entry.trial.hardware);
  return out;
}

}  // namespace sweep::driver
