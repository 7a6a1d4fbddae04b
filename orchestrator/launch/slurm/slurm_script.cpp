#include "orchestrator/launch/slurm/slurm_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time.h"
#include "orchestrator/launch/batch/batch_script.h"
#include "orchestrator/launch/slurm/slurm_state.h"
#include "runtime/attempt_token.h"
#include "schema/agent_call.h"
#include "schema/codec.h"

namespace sweep::launch {
namespace {

bool plain(const std::string& text, const char* beyond) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) || std::string_view(beyond).find(static_cast<char>(c)) != std::string_view::npos;
  });
}

SbatchOptions asks_for(const AllocationRequest& wanted, const SlurmOptions& options) {
  auto asks = sbatch_options_for(wanted.hardware, options);
  const bool names_gpus = asks.contains("gres") || asks.contains("gpus-per-node");
  if (!names_gpus && wanted.gpus > 0) asks["gpus-per-node"] = std::to_string(wanted.gpus);
  for (const auto& host : wanted.avoid)
    if (plain(host, "_.-")) {  // a node's own word: nothing else may get into the script
      auto& exclude = asks["exclude"];
      exclude += (exclude.empty() ? "" : ",") + host;
    }
  return asks;
}

// Adds the options in the order of the table.
void add_asks(std::vector<std::string>& out, const SbatchOptions& asks) {
  for_each_setting<SlurmSettings>([&](const LaunchKey& key, auto) {
    if (const auto found = asks.find(std::string(key.option)); found != asks.end())
      out.push_back(slurm_directive(found->first, found->second));
  });
}

}  // namespace

std::string slurm_directive(const std::string& name, const std::string& value) {
  if (plain(value, "_./:,@%+=-[]")) return fmt::format("--{}={}", name, value);
  std::string quoted;
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return fmt::format("--{}=\"{}\"", name, quoted);
}

// Slurm expands no % in a name that holds a backslash, and takes one backslash of each pair away.
std::string slurm_file_name(std::string path) {
  const char doubled = path.find('\\') == std::string::npos ? '%' : '\\';
  for (std::size_t at = 0; (at = path.find(doubled, at)) != std::string::npos; at += 2)
    path.insert(at, 1, doubled);
  return path;
}

std::vector<std::string> slurm_directives(const AllocationRequest& wanted, const SlurmOptions& options) {
  const auto head = sbatch_options_of_head(options);
  const bool parts = !head.empty();  // the first node is a part of its own
  std::vector<std::string> out{
      slurm_directive("job-name", batch_job_name(wanted.id)),
      fmt::format("--nodes={}", parts ? 1 : wanted.nodes),
      "--ntasks-per-node=1",
      slurm_directive("time", slurm_time(wanted.seconds)),
      "--no-requeue",
      "--open-mode=append",
      slurm_directive("output", slurm_file_name((wanted.spool / "slurm.log").string())),
      fmt::format("--signal=B:TERM@{}", signal_before_end(options))};
  if (*options.exclusive) out.emplace_back("--exclusive");
  auto asks = asks_for(wanted, options);
  auto first = asks;
  for (const auto& [name, value] : head) first[name] = value;
  add_asks(out, first);
  for (const auto& line : *options.extra) out.push_back(line);
  if (!parts || wanted.nodes == 1) return out;
  out.emplace_back("hetjob");
  out.push_back(fmt::format("--nodes={}", wanted.nodes - 1));
  out.emplace_back("--ntasks-per-node=1");
  if (*options.exclusive) out.emplace_back("--exclusive");
  asks.erase("licenses");  // Slurm would take them once more
  add_asks(out, asks);
  for (const auto& line : *options.extra) out.push_back(line);
  return out;
}

std::filesystem::path container_wrapper_path(const std::filesystem::path& spool) {
  return spool / "rank-in-container";
}

std::string container_wrapper(const SlurmContainer& container, const std::filesystem::path& rank,
                              const std::filesystem::path& spool) {
  std::string words;
  const auto add = [&](const std::string& word) { words += " " + shell_word(word); };
  const bool enroot =
      *container.runtime == "enroot" || *container.runtime == "pyxis";  // pyxis' images are enroot's
  if (enroot) {
    for (const char* word : {"enroot", "start", "--rw", "--mount"}) add(word);
    add(spool.string() + ":" + spool.string());
    add("--mount");
    add("/dev/shm:/dev/shm");
  } else {
    for (const char* word : {container.runtime->c_str(), "exec", "--bind"}) add(word);
    add(spool.string() + ",/dev/shm");
  }
  for (const auto& argument : *container.arguments) add(argument);
  add(*container.image);
  add(rank.string());
  return "#!/bin/sh\n# Starts a rank in its container; the agent stays outside.\nexec" + words + " \"$@\"\n";
}

double usable_seconds(double asked_s, const SlurmOptions& options) {
  return limit_seconds(slurm_time(asked_s)).value_or(asked_s) - reserved_seconds(options);
}

std::vector<std::string> head_agent_words(const AllocationRequest& wanted, const SlurmOptions& options,
                                          const Programs& programs) {
  const bool contained = options.container.stated;
  AgentCall call = batch_agent_call(wanted, programs, *options.idle_seconds);
  if (contained && !programs.rank.empty()) call.rank_program = container_wrapper_path(wanted.spool);
  call.bind = *options.colocate;
  if (options.existing_job > 0 && options.existing_job_ends_s)
    call.time_limit_s = std::floor(*options.existing_job_ends_s - steady_s() - reserved_seconds(options));
  if (wanted.nodes > 1) {
    call.nodes = wanted.nodes;
    call.peers = "slurm";
    call.lease_s = *options.lease_seconds;
    call.interface = *options.interface;
  }
  auto out = agent_words(call);
  out.insert(out.begin(), programs.agent.string());
  return out;
}

Expected<std::string> slurm_script(const AllocationRequest& wanted, const SlurmOptions& options,
                                   const Programs& programs) {
  auto head = batch_script_head("#SBATCH", slurm_directives(wanted, options));
  if (!head) return head;
  if (options.container.stated && wanted.spool.string().find_first_of(":,") != std::string::npos)
    return fail(
        fmt::format("{}: a container's list of folders cannot hold a path with a colon or a comma; "
                    "put the database into another folder",
                    wanted.spool.string()));
  std::string out = std::move(*head);
  out += "# One allocation of sweep: many trials, one after another, until the agent is told to finish.\n";
  // A second start would be a second agent on the same mailbox.
  out +=
      "if [ \"${SLURM_RESTART_COUNT:-0}\" -ne 0 ]; then echo 'started again by Slurm: nothing is done' >&2; "
      "exit 0; fi\n";
  for (const auto& line : *options.prologue) out += line + "\n";
  const std::string mark = attempt_token(allocation_key(wanted.id, wanted.spool), 0);
  out += fmt::format("export {}={}\n", kAttemptVariable, shell_word(mark));
  // The time that the prologue took is gone for the agent.
  out += fmt::format("left=$(({} - SECONDS))\n", static_cast<i64>(usable_seconds(wanted.seconds, options)));
  if (!options.prologue->empty())
    out +=
        "if [ \"$left\" -le 0 ]; then echo 'the prologue took all of the time of the job' >&2; exit 1; fi\n";
  out += "exec";
  for (const auto& word : head_agent_words(wanted, options, programs)) out += " " + shell_word(word);
  return out + fmt::format(" {} \"$left\"\n", kTimeLimitOption);
}

}  // namespace sweep::launch
