#include "orchestrator/cli/launchers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/cli/gpu_hours.h"
#include "orchestrator/cli/planning.h"
#include "orchestrator/cli/rehearsal.h"
#include "orchestrator/grid/site.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/local/local.h"
#include "orchestrator/launch/slurm/slurm.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "orchestrator/launch/ssh/ssh.h"
#include "schema/codec.h"
#include "schema/rehearsal.h"

namespace sweep::cli {

namespace fs = std::filesystem;

Expected<launch::Programs> programs_for(const LaunchRequest& request) {
  launch::Programs out{request.agent.empty() ? program_dir() / "sweep-agent" : fs::absolute(request.agent),
                       request.rank.empty() ? program_dir() / "sweep-rank" : fs::absolute(request.rank),
                       request.start == "zygote"};
  for (const auto& program : {out.agent, out.rank})
    if (!fs::exists(program))
      return fail(
          fmt::format("{}: not found; build it (scripts/quickstart does) or name it with --agent and --rank",
                      program.string()));
  return out;
}

namespace {

constexpr double kWorthAHost = 10;  // seconds of work: hosts wait in no queue, and start within some seconds

run::MakeLauncher local_maker(const launch::Programs& programs) {
  return [local = launch::LocalOptions{programs.agent, programs.rank, programs.zygote, programs.screen}](
             boost::asio::io_context& io, launch::Launcher::Sink sink) {
    return launch::make_local(io, local, std::move(sink));
  };
}

// An allocation that is there already: its nodes, and how long it lasts. 0 nodes: it has none, or Slurm does not say.
void ask_standing(launch::SlurmOptions& options) {
  const auto said = launch::run_alone({"squeue", "--noheader", fmt::format("--jobs={}", options.existing_job),
                                       "--states=RUNNING", "--format=%D|%L"},
                                      60);
  options.max_nodes = said.ok() ? std::atoll(said.out.c_str()) : 0;
  const auto left = said.out.find('|');
  if (said.ok() && left != std::string::npos)
    options.existing_job_seconds_left =
        launch::slurm_seconds(said.out.substr(left + 1, said.out.find('\n') - left - 1));
}

std::set<std::string> partitions_of(const launch::SlurmOptions& options) {
  const auto named = [](const std::map<std::string, std::string>& asks) {
    const auto found = asks.find("partition");
    return found == asks.end() ? std::string() : found->second;
  };
  std::set<std::string> out{named(options.ask)};
  for (const auto& [hardware, asks] : options.hardware)
    out.insert(named(launch::sbatch_options_for(hardware, options)));
  if (options.head.contains("partition")) out.insert(named(options.head));
  return out;
}

Expected<run::MakeLauncher> slurm_maker(const LaunchChoice& choice, const nlohmann::json& settings,
                                        const launch::Programs& programs, const LaunchRequest& request,
                                        run::Settings& s) {
  auto options = launch::slurm_options_from(settings);
  if (!options) return tl::unexpected(options.error());
  options->existing_job = choice.existing_job;
  if (choice.existing_job > 0) {
    options->max_allocations = 1;
    ask_standing(*options);
    if (options->max_nodes < 1)
      return fail(fmt::format("Slurm tells of no nodes of job {}: is it running?", choice.existing_job));
  }
  if (choice.existing_job == 0) SWEEP_TRY(know_partitions(*options));
  s.allocate_per_shape = true;
  if (request.slots > 0) options->slots = request.slots;
  const auto slots = slots_of(*options);
  if (!slots) return tl::unexpected(slots.error());
  s.slots = *slots;
  s.bounds = {options->max_nodes, options->max_allocations, options->time_s, options->allocation_nodes,
              choice.existing_job > 0};
  s.bounds.spread_s = options->spread_s;
  return run::MakeLauncher(
      [options = std::move(*options), programs](boost::asio::io_context& io, launch::Launcher::Sink sink) {
        return launch::make_slurm(io, options, programs, std::move(sink));
      });
}

Expected<run::MakeLauncher> ssh_maker(const LaunchChoice& choice, const nlohmann::json& settings,
                                      const launch::Programs& programs, run::Settings& s) {
  auto options = launch::ssh_options_from(settings);
  if (!options) return tl::unexpected(options.error());
  s.allocate_per_shape = true;
  s.slots = options->hosts[0].slots;
  for (const auto& host : options->hosts) {
    s.slots = std::min(s.slots, host.slots);
    if (!host.price_per_hour || host.hardware.empty()) continue;  // of several the dearest
    auto& price = s.usd_per_node_hour.try_emplace(host.hardware, *host.price_per_hour).first->second;
    if (!choice.usd_per_node_hour.contains(host.hardware)) price = std::max(price, *host.price_per_hour);
  }
  const auto hosts = static_cast<i64>(options->hosts.size());
  s.bounds = {hosts, hosts, std::nullopt};
  s.bounds.min_work_per_node_s = kWorthAHost;
  return run::MakeLauncher(
      [options = std::move(*options), programs](boost::asio::io_context& io, launch::Launcher::Sink sink) {
        return launch::make_ssh(io, options, programs, std::move(sink));
      });
}

Expected<std::string> named_by(const nlohmann::json& launch) {
  if (launch.size() > 1)
    return fail("the grid's launch section names several launchers; choose one with --on");
  return launch.size() == 1 ? launch.begin().key() : std::string();
}

// "gpu:h100:8(S:0-3)", "8", "h100:8" -> 8; absent: it says nothing of GPUs.
std::optional<i64> gpus_in(const std::string& name, const std::string& asked) {
  const auto from = name == "gres" ? asked.find("gpu") : 0;
  if (from == std::string::npos) return std::nullopt;
  const auto text = asked.substr(from, asked.find_first_of("(,", from) - from);
  const auto digits = text.find_last_not_of("0123456789");
  const auto number = digits == std::string::npos ? text : text.substr(digits + 1);
  const i64 count = number.empty() ? 0 : std::atoll(number.c_str());
  return count > 0 ? std::optional(count) : std::nullopt;
}

// GPUs of a node and who says so: what Slurm is asked for, else the catalogue.
struct KnownGpus {
  i64 count = 0;
  std::string source;
};
std::optional<KnownGpus> gpus_of_node(const std::string& hardware, const launch::SlurmOptions& options) {
  const auto asks = launch::sbatch_options_for(hardware, options);
  for (const char* name : {"gres", "gpus-per-node"})
    if (const auto found = asks.find(name); found != asks.end())
      if (const auto count = gpus_in(name, found->second))
        return KnownGpus{*count, name + (" " + found->second)};
  const auto known = shape::find_hardware(hardware);
  if (!known || known->gpu.empty()) return std::nullopt;
  return KnownGpus{known->gpus_per_node, "the catalogue; `gres` says what a node of yours has"};
}

// The largest number of slots that the settings name, and where; 1: trials have their nodes to themselves.
Expected<std::pair<i64, std::string>> most_slots(const LaunchChoice& choice, const nlohmann::json& settings) {
  if (choice.on == "slurm") {
    const auto options = launch::slurm_options_from(settings);
    if (!options) return tl::unexpected(options.error());
    return slots_of(*options).map(
        [](i64 slots) { return std::pair(slots, std::string("launch.slurm.slots")); });
  }
  const auto options = launch::ssh_options_from(settings);
  std::pair<i64, std::string> out{1, ""};
  if (!options) return out;  // a plan may be made where the hosts are not known
  for (const auto& host : options->hosts)
    if (host.slots > out.first && host.hardware != "cpu")
      out = {host.slots, fmt::format("launch.ssh.hosts: slots of {}", host.name)};
  return out;
}

}  // namespace

Expected<void> know_partitions(launch::SlurmOptions& options) {
  for (const auto& partition : partitions_of(options)) {
    const auto said = launch::run_alone(launch::sinfo_of(partition), 60);
    if (!said.ok()) continue;
    const auto facts = launch::read_sinfo(said.out);
    options.idle[partition] = facts.idle;
    if (!facts.longest_s) continue;
    const auto name = partition.empty() ? std::string("the default partition") : "partition " + partition;
    if (options.time_s && *options.time_s > *facts.longest_s)
      return fail(fmt::format("launch.slurm.time: {} is longer than {} allows a job ({}); make it shorter",
                              launch::slurm_time(*options.time_s), name,
                              launch::slurm_time(*facts.longest_s)));
    if (*facts.longest_s <= launch::reserved_seconds(options))
      return fail(
          fmt::format("{} allows a job {}, and signal_seconds leaves nothing of it; name another partition",
                      name, launch::slurm_time(*facts.longest_s)));
    options.longest_s = std::min(options.longest_s.value_or(*facts.longest_s), *facts.longest_s);
  }
  if (!options.time_s) options.time_s = options.longest_s;
  return {};
}

Expected<i64> slots_of(const launch::SlurmOptions& options) {
  if (options.colocate && options.slots < 1)
    return fail(
        "launch.slurm.colocate: say with `slots` how many GPUs (CPU ranks) of a node may be busy at once");
  return options.colocate ? options.slots : 1;
}

Expected<void> slots_fit(const LaunchChoice& choice, const LaunchRequest& request,
                         const std::set<std::string>& hardware) {
  if (choice.on == "local" || choice.on == kRehearsalLauncher) return {};
  auto settings = parse_json(choice.settings);
  if (!settings) return tl::unexpected(settings.error());
  if (choice.on == "slurm" && request.slots > 0) (*settings)["slots"] = request.slots;
  const auto slots = most_slots(choice, *settings);
  if (!slots) return tl::unexpected(slots.error());
  if (slots->first <= 1) return {};
  const auto asked = choice.on == "slurm" ? launch::slurm_options_from(*settings) : launch::SlurmOptions{};
  for (const auto& name : hardware) {
    const auto gpus = name == "cpu" ? std::nullopt : gpus_of_node(name, *asked);
    if (gpus && gpus->count < slots->first)
      return fail(
          fmt::format("{} is {}, but a node of {} has {} GPUs (by {}): trials side by side need one for each "
                      "slot; make slots {} or fewer",
                      slots->second, slots->first, name, gpus->count, gpus->source, gpus->count));
  }
  return {};
}

std::optional<std::string> hosts_short(const LaunchChoice& choice, const std::vector<PlanEntry>& entries) {
  if (choice.on != "ssh") return std::nullopt;
  const auto settings = parse_json(choice.settings);
  const auto options = settings ? launch::ssh_options_from(*settings) : tl::unexpected(settings.error());
  if (!options) return options.error().message;
  std::map<std::pair<std::string, i64>, i64> trials;  // by hardware and nodes
  for (const auto& entry : entries)
    if (entry.admitted) ++trials[{entry.trial.hardware, entry.trial.nodes}];
  std::vector<std::string> beyond;
  for (const auto& [need, count] : trials) {
    const auto& [hardware, nodes] = need;
    const auto there = std::ranges::count_if(
        options->hosts,
        [&wanted = hardware](const launch::SshHost& host) { return launch::serves(host, wanted); });
    if (there < nodes)
      beyond.push_back(fmt::format("{} that need {} {} {}, of which {} {} named", count, nodes, hardware,
                                   nodes == 1 ? "host" : "hosts", there, there == 1 ? "is" : "are"));
  }
  if (beyond.empty()) return std::nullopt;
  return fmt::format(
      "these trials would stay pending: {}; name more hosts of that hardware in launch.ssh.hosts",
      fmt::join(beyond, "; "));
}

std::optional<std::string> ranks_beyond_cores(const LaunchChoice& choice,
                                              const std::vector<PlanEntry>& entries) {
  if (choice.on != "local") return std::nullopt;
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

Expected<LaunchChoice> choose_launcher(const std::string& launch, const LaunchRequest& request) {
  const auto section = parse_json(launch.empty() ? "{}" : launch);
  if (!section) return tl::unexpected(section.error());
  LaunchChoice choice;
  choice.on = request.on;
  if (choice.on.empty()) {
    const auto named = named_by(*section);
    if (!named) return tl::unexpected(named.error());
    const char* inside = std::getenv("SLURM_JOB_ID");
    const i64 existing_job = request.job > 0 ? request.job : inside != nullptr ? std::atoll(inside) : 0;
    choice.on = !named->empty() ? *named : existing_job > 0 ? "slurm" : "local";
    if (choice.on == "slurm") choice.existing_job = existing_job;
  } else if (choice.on == "slurm") {
    choice.existing_job = request.job;
  }
  const auto site = grid::read_site(grid::site_files());
  if (!site) return tl::unexpected(site.error());
  choice.settings = grid::launch_settings(site->launch, launch, choice.on);
  choice.gpu_hours = site->gpu_hours;
  choice.usd_per_node_hour = site->usd_per_node_hour;
  for (const auto& file : site->files) choice.sites += (choice.sites.empty() ? "" : ", ") + file.string();
  return choice;
}

Expected<run::MakeLauncher> prepare_launcher(const LaunchChoice& choice, const LaunchRequest& request,
                                             run::Settings& s) {
  auto programs = programs_for(request);
  if (!programs) return tl::unexpected(programs.error());
  const auto settings = parse_json(choice.settings);
  if (!settings) return tl::unexpected(settings.error());
  programs->screen = request.screen.empty() ? settings->value("screen", "") : request.screen;
  s.exclude_slow_hosts = programs->screen == "leave_out";
  s.launcher = choice.on;
  s.start = request.start;
  s.usd_per_node_hour = choice.usd_per_node_hour;
  s.gpu_hours = smaller_limit(s.gpu_hours, choice.gpu_hours);
  if (choice.on == kRehearsalLauncher) return rehearsal_maker(*programs, s);
  if (choice.on == "slurm") return slurm_maker(choice, *settings, *programs, request, s);
  if (choice.on == "ssh") return ssh_maker(choice, *settings, *programs, s);
  const i64 gpus = local_resources().gpus;
  s.slots = request.slots > 0 ? request.slots : settings->value("slots", gpus > 0 ? gpus : cpu_cores());
  return local_maker(*programs);
}

}  // namespace sweep::cli
