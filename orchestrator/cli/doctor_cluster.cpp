#include "orchestrator/cli/doctor_cluster.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/expected.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "orchestrator/cli/show_scripts.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm.h"
#include "orchestrator/launch/slurm/slurm_options.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "orchestrator/launch/ssh/ssh_refusal.h"
#include "orchestrator/launch/ssh/ssh_shell.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/spool.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

constexpr double kReach = 20, kProbe = 120, kSrun = 120;  // seconds
constexpr int kNoFolder = 9;                              // exit code of the probe's shell line

std::string first_line(const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (const auto last = line.find_last_not_of(" \t\r"); last != std::string::npos)
      return line.substr(0, last + 1);
  return {};
}

// Each line that is a JSON object; launchers and shells may say other things beside.
std::vector<nlohmann::json> objects_in(const std::string& text) {
  std::vector<nlohmann::json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto brace = line.find('{');
    if (brace == std::string::npos) continue;
    if (auto parsed = parse_json(line.substr(brace)); parsed && parsed->is_object())
      out.push_back(std::move(*parsed));
  }
  return out;
}

launch::SshShell::CommandResult ask_host(const launch::SshOptions& options, const std::string& host,
                                         const std::string& line, std::string input, double limit_s) {
  boost::asio::io_context io;
  launch::SshShell shell(io, options);
  launch::SshShell::CommandResult said;
  shell.ask(host, line, std::move(input), limit_s,
            [&](const launch::SshShell::CommandResult& answer) { said = answer; });
  io.run();
  return said;
}

// `host`: as one tries it by hand.
std::string cause_of(const launch::SshShell::CommandResult& said, const std::string& host) {
  if (said.code == 255) return launch::why_ssh_failed(host, said.err);
  if (said.timed_out) return "no answer in time";
  const std::string line = first_line(said.err.empty() ? said.out : said.err);
  return line.empty() ? fmt::format("exit code {}", said.code) : line;
}

std::string rank_there(const SelfTestRequest& request, const std::string& named) {
  if (!named.empty()) return named;
  return request.launch.rank.empty() ? (program_dir() / "sweep-rank").string()
                                     : std::filesystem::absolute(request.launch.rank).string();
}
std::string agent_here(const SelfTestRequest& request) {
  return request.launch.agent.empty() ? (program_dir() / "sweep-agent").string()
                                      : std::filesystem::absolute(request.launch.agent).string();
}

// The probe's shell line: the agent that is there, or ours, sent along and removed again.
std::string probe_line(const launch::SshOptions& options, const launch::SshHost& host,
                       const std::string& rank) {
  const std::string enter = fmt::format("umask 077; mkdir -p {0} && cd {0} || exit {1}; ",
                                        launch::remote_word(options.directory), kNoFolder);
  const std::string words = fmt::format("--probe \"$(pwd -P)\" {}", shell_word(rank));
  if (!host.agent.empty()) return enter + "pwd -P; " + launch::remote_word(host.agent) + " " + words;
  return enter + fmt::format(
                     "pwd -P; t=$(mktemp ./doctor.XXXXXX) && cat > \"$t\" && chmod 700 \"$t\" || {{ rm -f "
                     "\"$t\"; exit {}; "
                     "}}; \"$t\" {}; c=$?; rm -f \"$t\"; exit $c",
                     kNoFolder, words);
}

// Why the probe gave no answer, and what to do about it.
Finding no_probe(const launch::SshShell::CommandResult& said, const launch::SshHost& host,
                 const std::string& hand) {
  const auto cause = cause_of(said, hand);
  if (said.code == kNoFolder)
    return {host.name + " folder", Health::kBad,
            fmt::format("{}: make room there, or name another folder with directory", cause)};
  const char* way =
      !host.agent.empty() ? "name one that runs there with agent, or none and it is copied"
      : said.code == 126
          ? "no program may be run from its folder (mounted noexec?): name another one with directory"
          : "build it for that machine, or name one with agent";
  return {host.name + " agent", Health::kBad,
          fmt::format("its sweep-agent does not run: {}: {}", cause, way)};
}

std::vector<Finding> examine_host(const ClusterCheckRequest& request, const launch::SshOptions& options,
                                  const launch::SshHost& host, const std::string& agent) {
  const auto hand = launch::by_hand(options, host.name);
  const auto reached = ask_host(options, host.name, "echo \"$HOME\"", "", kReach);
  if (reached.code != 0) {
    auto cause = cause_of(reached, hand);
    if (cause.find("`ssh ") == std::string::npos)
      cause += fmt::format(
          ": try `ssh {} true`; it must work without a question (keys, known_hosts, the ssh "
          "configuration)",
          hand);
    return {{host.name + " reach", Health::kBad, cause}};
  }
  std::vector<Finding> out{{host.name + " reach", Health::kGood, "answers"}};
  NodeWants wants;
  wants.node = host.name, wants.version = kVersion, wants.hardware = host.hardware;
  wants.rank = launch::remote_path(rank_there(request.selftest, host.rank), first_line(reached.out));
  wants.asked_unix_ns = unix_ns_now();
  const auto said = ask_host(options, host.name, probe_line(options, host, wants.rank),
                             host.agent.empty() ? agent : "", kProbe);
  wants.answered_unix_ns = unix_ns_now();
  const auto answers = objects_in(said.out);
  if (said.code != 0 || answers.empty()) {
    out.push_back(no_probe(said, host, hand));
    return out;
  }
  wants.folder = first_line(said.out);
  for (auto& finding : judge_node(answers.back(), wants)) out.push_back(std::move(finding));
  return out;
}

bool any_bad(const std::vector<Finding>& findings) {
  for (const auto& finding : findings)
    if (finding.health == Health::kBad) return true;
  return false;
}

Expected<void> add_loop(Io& io, const ClusterCheckRequest& request, i64 nodes,
                        std::vector<Finding>& findings) {
  if (any_bad(findings)) {
    findings.push_back({"loop", Health::kWarning, "skipped until the errors above are fixed"});
    return {};
  }
  auto loop = examine_loop(io, request, nodes);
  if (!loop) return tl::unexpected(loop.error());
  for (auto& finding : *loop) findings.push_back(std::move(finding));
  return {};
}

Finding judge_controller() {
  const auto said = launch::run_alone({"scontrol", "ping"}, kReach);
  const std::string line = first_line(said.out + said.err);
  if (said.ok() && said.out.find("UP") != std::string::npos) return {"slurmctld", Health::kGood, line};
  return {"slurmctld", Health::kBad,
          fmt::format("{}: this must be a machine from which sbatch works (PATH, SLURM_CONF, a login node)",
                      line.empty() ? "no answer" : line)};
}

std::vector<Finding> judge_partition(const launch::SlurmOptions& options, i64 nodes) {
  const auto named = options.ask.find("partition");
  const std::string partition = named == options.ask.end() ? "" : named->second;
  const auto said = launch::run_alone(launch::sinfo_of(partition), kReach);
  const std::string what = partition.empty() ? "partition" : "partition " + partition;
  const auto facts = launch::read_sinfo(said.out);
  if (!said.ok() || facts.nodes == 0)
    return {{what, Health::kBad,
             fmt::format("Slurm has none of that name: {}; `sinfo -s` lists them",
                         first_line(said.err.empty() ? "no nodes in it" : said.err))}};
  if (!facts.up)
    return {{what, Health::kBad, "it is not up: choose another one with launch: {slurm: {partition: NAME}}"}};
  if (facts.working < nodes)
    return {{what, Health::kBad,
             fmt::format("{} of its {} nodes work{}, {} are wanted: `sinfo -R` says why the others do not",
                         facts.working, facts.nodes, facts.others.empty() ? "" : " (" + facts.others + ")",
                         nodes)}};
  return {{what, Health::kGood, fmt::format("up, {} of {} nodes work", facts.working, facts.nodes)}};
}

// The script a run would submit, asked of sbatch without submitting it.
Finding judge_submission(const ClusterCheckRequest& request, const launch::SlurmOptions& options) {
  launch::AllocationRequest allocation;
  allocation.id = "a0001-00000000";
  allocation.spool = std::filesystem::absolute(request.selftest.db + ".spool") / allocation.id;
  allocation.nodes = request.nodes, allocation.hardware = request.hardware, allocation.seconds = 600;
  const launch::Programs programs{agent_here(request.selftest), rank_there(request.selftest, ""), true};
  const auto said = launch::slurm_script(allocation, options, programs).and_then(test_only);
  if (!said) return {"submission", Health::kBad, said.error().message};
  if (said->ok()) return {"submission", Health::kGood, "sbatch would take it"};
  const std::string line = first_line(said->err + said->out);
  return {"submission", Health::kBad,
          fmt::format("{}: `sweep plan GRID --sbatch` shows what was asked", line)};
}

// One task of the agent's probe on each node.
std::vector<Finding> judge_nodes(const ClusterCheckRequest& request, const launch::SlurmOptions& options,
                                 const LaunchChoice& choice) {
  const auto folder = std::filesystem::absolute(request.selftest.db).parent_path().string();
  const std::string rank = rank_there(request.selftest, "");
  std::vector<std::string> words{"srun", fmt::format("--nodes={}", request.nodes), "--ntasks-per-node=1",
                                 "--quiet", "--mpi=none"};
  if (choice.existing_job > 0) {
    words.push_back(fmt::format("--jobid={}", choice.existing_job));
    words.emplace_back("--overlap");
  } else {
    words.insert(words.end(), {"--immediate=60", "--time=5", "--job-name=sweep-doctor"});
    auto asks = options.ask;
    if (const auto own = options.hardware.find(request.hardware); own != options.hardware.end())
      for (const auto& [name, value] : own->second) asks[name] = value;
    for (const auto& [name, value] : asks) words.push_back(fmt::format("--{}={}", name, value));
  }
  for (const auto& word : {agent_here(request.selftest), std::string("--probe"), folder, rank})
    words.push_back(word);
  const auto asked = unix_ns_now();
  const auto said = launch::run_alone(words, kSrun);
  const auto answered = unix_ns_now();
  const auto answers = objects_in(said.out);
  if (answers.empty())
    return {{"nodes", Health::kBad,
             fmt::format("srun of sweep-agent: {}; the program must lie on a filesystem that all nodes "
                         "share, and {} nodes "
                         "must be free within a minute (or stand in an allocation: --jobid)",
                         said.timed_out ? "no answer in time" : first_line(said.err), request.nodes)}};
  std::vector<Finding> out;
  for (const auto& probe : answers) {
    NodeWants wants{text_of(probe, "host"), kVersion, folder, rank, request.hardware, true, asked, answered};
    for (auto& finding : judge_node(probe, wants)) out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace

Expected<std::vector<Finding>> examine_ssh(Io& io, const ClusterCheckRequest& request,
                                           const LaunchChoice& choice) {
  const auto settings = parse_json(choice.settings);
  if (!settings) return tl::unexpected(settings.error());
  const auto options = launch::ssh_options_from(*settings);
  if (!options) return tl::unexpected(options.error());
  const auto agent = files::read(agent_here(request.selftest), std::size_t{1} << 30);
  if (!agent) return tl::unexpected(agent.error());
  std::vector<Finding> findings;
  for (const auto& host : options->hosts)
    for (auto& finding : examine_host(request, *options, host, *agent))
      findings.push_back(std::move(finding));
  SWEEP_TRY(add_loop(io, request, static_cast<i64>(options->hosts.size()), findings));
  return findings;
}

Expected<std::vector<Finding>> examine_slurm(Io& io, const ClusterCheckRequest& request,
                                             const LaunchChoice& choice) {
  const auto settings = parse_json(choice.settings);
  if (!settings) return tl::unexpected(settings.error());
  const auto options = launch::slurm_options_from(*settings);
  if (!options) return tl::unexpected(options.error());
  std::vector<Finding> findings{judge_controller()};
  if (!any_bad(findings) && choice.existing_job == 0) {
    for (auto& finding : judge_partition(*options, request.nodes)) findings.push_back(std::move(finding));
    findings.push_back(judge_submission(request, *options));
  }
  if (!any_bad(findings))
    for (auto& finding : judge_nodes(request, *options, choice)) findings.push_back(std::move(finding));
  SWEEP_TRY(add_loop(io, request, request.nodes, findings));
  return findings;
}

}  // namespace sweep::cli
