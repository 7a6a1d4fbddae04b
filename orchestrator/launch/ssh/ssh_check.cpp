// The checks of `sweep doctor --on ssh` on every host: is it reached, does its agent run, and what does the
// agent see there.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "orchestrator/launch/probe_answer.h"
#include "orchestrator/launch/ssh/ssh.h"
#include "orchestrator/launch/ssh/ssh_refusal.h"
#include "orchestrator/launch/ssh/ssh_shell.h"
#include "schema/version.h"

namespace sweep::launch {
namespace {

constexpr double kReachLimit = 20, kProbeLimit = 120;  // seconds
constexpr int kNoFolder = 9;                           // exit code of the probe's shell line
constexpr int kNotExecutable = 126;                    // exit code of a shell
constexpr int kSshFailed = 255;                        // exit code of ssh itself

SshShell::CommandResult ask_host(const SshOptions& options, const std::string& host, const std::string& line,
                                 const std::string& input, double limit_s) {
  boost::asio::io_context io;
  SshShell shell(io, options);
  return run_to_end(io, shell.ask(host, line, input, limit_s));
}

// `host`: as a person tries it by hand.
std::string cause_of(const SshShell::CommandResult& result, const std::string& host) {
  if (result.code == kSshFailed) return why_ssh_failed(host, result.err);
  if (result.timed_out) return "no answer in time";
  const std::string line = first_line(result.err.empty() ? result.out : result.err);
  return line.empty() ? fmt::format("exit code {}", result.code) : line;
}

// The probe's shell line. An agent that the settings do not name is sent along and removed again.
std::string probe_line(const SshOptions& options, const SshHost& host, const NodeWants& wants) {
  const std::string enter = fmt::format("umask 077; mkdir -p {0} && cd {0} || exit {1}; ",
                                        remote_word(*options.directory), kNoFolder);
  std::string words = fmt::format("--probe \"$(pwd -P)\" {}", shell_word(wants.rank));
  if (!wants.working.empty()) words += " " + shell_word(wants.working);
  if (!host.agent.empty()) return enter + "pwd -P; " + remote_word(host.agent) + " " + words;
  return enter + fmt::format(
                     "pwd -P; t=$(mktemp ./doctor.XXXXXX) && cat > \"$t\" && chmod 700 \"$t\" || {{ rm -f "
                     "\"$t\"; exit {}; }}; \"$t\" {}; c=$?; rm -f \"$t\"; exit $c",
                     kNoFolder, words);
}

// Why the probe gave no answer, and what to do about it.
Finding no_probe(const SshShell::CommandResult& result, const SshHost& host, const std::string& hand) {
  const auto cause = cause_of(result, hand);
  if (result.code == kNoFolder)
    return {host.name + " folder", Health::kBad,
            fmt::format("{}: make room there, or name another folder with directory", cause)};
  const char* way =
      !host.agent.empty() ? "name one that runs there with agent, or none and it is copied"
      : result.code == kNotExecutable
          ? "no program may be run from its folder (mounted noexec?): name another one with directory"
          : "build it for that machine, or name one with agent";
  return {host.name + " agent", Health::kBad,
          fmt::format("its sweep-agent does not run: {}: {}", cause, way)};
}

Finding not_reached(const SshShell::CommandResult& result, const SshHost& host, const std::string& hand) {
  if (result.code == kSshFailed)
    if (auto known = explain_ssh_failure(hand, result.err))
      return {host.name + " reach", Health::kBad, *known};
  return {host.name + " reach", Health::kBad,
          fmt::format("{}: try `ssh {} true`; it must work without a question (keys, known_hosts, the ssh "
                      "configuration)",
                      cause_of(result, hand), hand)};
}

std::vector<Finding> check_host(const CheckRequest& request, const SshOptions& options, const SshHost& host,
                                const std::string& agent) {
  const auto hand = by_hand(options, host.name);
  const auto reached = ask_host(options, host.name, "echo \"$HOME\"", "", kReachLimit);
  if (reached.code != 0) return {not_reached(reached, host, hand)};
  std::vector<Finding> out{{host.name + " reach", Health::kGood, "answers"}};
  NodeWants wants;
  wants.node = host.name, wants.version = kVersion, wants.hardware = host.hardware;
  wants.rank =
      remote_path(host.rank.empty() ? request.programs.rank.string() : host.rank, first_line(reached.out));
  wants.working = request.working_folder;
  wants.asked_unix_ns = unix_ns_now();
  const auto result = ask_host(options, host.name, probe_line(options, host, wants),
                               host.agent.empty() ? agent : "", kProbeLimit);
  wants.answered_unix_ns = unix_ns_now();
  const auto probes = probes_in(result.out);
  if (result.code != 0 || probes.empty()) {
    out.push_back(no_probe(result, host, hand));
    return out;
  }
  wants.folder = first_line(result.out);
  for (auto& finding : request.judge(probes.back(), wants)) out.push_back(std::move(finding));
  return out;
}

}  // namespace

Expected<std::vector<Finding>> check_ssh(const SshOptions& options, const CheckRequest& request) {
  SWEEP_GET(const auto agent, files::read(request.programs.agent, std::size_t{1} << 30));
  std::vector<Finding> findings;
  for (const auto& host : options.all_hosts)
    for (auto& finding : check_host(request, options, host, agent)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace sweep::launch
