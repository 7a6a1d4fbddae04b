#include "orchestrator/launch/ssh/ssh_leftovers.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "base/text.h"
#include "orchestrator/launch/allocation_record.h"
#include "orchestrator/launch/commands.h"
#include "orchestrator/launch/slurm/slurm_script.h"
#include "orchestrator/launch/ssh/ssh_logs.h"
#include "orchestrator/launch/ssh/ssh_refusal.h"
#include "orchestrator/launch/ssh/ssh_shell.h"
#include "runtime/spool_writer.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/spool.h"

namespace sweep::launch {
namespace {

constexpr double kForLooking = 60, kForEnding = 120;  // seconds

// `host`: the name that a person would give to ssh.
std::string why_unanswered(const std::string& host, const SshShell::CommandResult& said) {
  if (said.timed_out) return "no answer in time";
  if (said.code == 255) return why_ssh_failed(host, said.err);
  return last_line(said.err.empty() ? said.out : said.err);
}

// A script of /bin/sh that says for each part, by its number here: "folder N", and a line of JSON for each
// process.
std::string looking_script(const std::vector<RemoteNode>& all, const std::vector<std::size_t>& here) {
  std::string out;
  for (const std::size_t i : here)
    out += fmt::format(
        "echo part {0}; if [ -d {1} ]; then echo folder; fi\n"
        "if [ -x {2} ]; then {2} end --show --spool {1} --allocation {3} 2>/dev/null; fi\n",
        i, shell_word(all[i].folder), shell_word(all[i].agent), shell_word(all[i].allocation));
  return out;
}

void read_answer(const std::string& said, const std::vector<RemoteNode>& all,
                 std::vector<RemoteLeftovers>& out) {
  std::istringstream lines(said);
  std::size_t part = all.size();
  const auto found = [&]() -> RemoteLeftovers& {
    if (out.empty() || out.back().of.folder != all[part].folder || out.back().of.host != all[part].host)
      out.push_back({all[part], {}});
    return out.back();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("part ")) part = std::strtoull(line.c_str() + 5, nullptr, 10);
    if (part >= all.size()) continue;
    if (line == "folder") (void)found();
    if (!line.starts_with("{")) continue;
    if (const auto process = parse_json(line); process && process->is_object())
      found().processes.push_back(
          fmt::format("{}  {}", integer_of(*process, "pid"), text_of(*process, "command")));
  }
}

awaitable<void> look_at(SshShell& shell, std::string host, std::string script,
                        const std::vector<RemoteNode>& all, FarHosts& out) {
  const auto said = co_await shell.ask(host, "exec /bin/sh", script, kForLooking);
  if (said.code == 255 || said.timed_out || said.out.find("part ") == std::string::npos)
    out.unanswered.push_back(
        fmt::format("{}: {}", host, why_unanswered(by_hand(shell.settings(), host), said)));
  read_answer(said.out, all, out.left);
}

// An agent that is not there any more can end nothing.
std::string ending_line(const RemoteNode& node, std::uint64_t have) {
  return fmt::format(
      "if [ -x {0} ]; then {0} end --spool {1} --allocation {2} >/dev/null || "
      "{{ echo 'a process does not end' >&2; exit 5; }}; fi; [ ! -e {3} ] || tail -c +{4} {3}",
      shell_word(node.agent), shell_word(node.folder), shell_word(node.allocation),
      shell_word(spool::outbox(node.folder).string()), have + 1);
}

std::string removal_line(const std::string& folder) {
  return fmt::format("rm -rf {0} && {{ rmdir \"$(dirname {0})\" 2>/dev/null; exit 0; }}; exit 5",
                     shell_word(folder));
}

awaitable<void> end_on_host(boost::asio::io_context& io, SshShell& shell, RemoteNode node,
                            std::vector<std::string>& failed) {
  const auto cleared = co_await clear_host(io, shell, node);
  if (!cleared) failed.push_back(node.host + ": " + cleared.error().message);
}

}  // namespace

awaitable<Expected<void>> clear_host(boost::asio::io_context& io, SshShell& shell, RemoteNode node) {
  const auto hand = by_hand(shell.settings(), node.host);
  const auto outbox = spool::outbox(node.spool);
  const auto have = files::size_of(outbox);
  const auto rest = co_await shell.ask(node.host, ending_line(node, have), "", kForEnding);
  if (rest.code != 0) co_return fail(why_unanswered(hand, rest));
  // Synced also where nothing is new: with its folder the host loses what it could send again.
  const auto kept = spool::append_copy(outbox, have, rest.out, spool::Copy::kSynced);
  if (!kept) co_return tl::unexpected(kept.error());
  const auto archive = logs_archive(node.spool, node.node);
  const auto logs = co_await shell.ask(node.host, logs_line(node.folder), "", kForEnding, archive);
  const bool there = files::size_of(archive) > 0;  // else its folder is gone
  const bool whole = co_await unpack_logs(io, archive, node.spool, node.node);
  if (logs.code != 0) co_return fail("its logs: " + why_unanswered(hand, logs));
  if (there && !whole) co_return fail("its logs cannot be unpacked here");
  const auto removed = co_await shell.ask(node.host, removal_line(node.folder), "", kForEnding);
  if (removed.code != 0) co_return fail(why_unanswered(hand, removed));
  co_return Expected<void>();
}

std::vector<RemoteNode> far_nodes(const std::filesystem::path& spool, const std::string& allocation) {
  std::vector<RemoteNode> out;
  const auto record = read_record(spool, "ssh");
  if (!record || !*record || !(*record)->contains("hosts") || !(**record)["hosts"].is_array()) return out;
  std::size_t node = 0;
  for (const auto& each : (**record)["hosts"]) {
    RemoteNode far{allocation, text_of(each, "host"), text_of(each, "agent"), text_of(each, "spool"), spool,
                   node++};
    if (!far.host.empty() && !far.agent.empty() && !far.folder.empty()) out.push_back(std::move(far));
  }
  return out;
}

FarHosts find_far(const SshOptions& options, const std::vector<RemoteNode>& all) {
  std::map<std::string, std::vector<std::size_t>> by_host;
  for (std::size_t i = 0; i < all.size(); ++i) by_host[all[i].host].push_back(i);
  FarHosts out;
  boost::asio::io_context io;
  SshShell shell(io, options);
  for (const auto& [host, here] : by_host)
    start_coroutine(io, look_at(shell, host, looking_script(all, here), all, out));
  io.run();
  return out;
}

std::vector<std::string> end_far(const SshOptions& options, const std::vector<RemoteLeftovers>& left) {
  std::vector<std::string> failed;
  boost::asio::io_context io;
  SshShell shell(io, options);
  for (const auto& each : left) start_coroutine(io, end_on_host(io, shell, each.of, failed));
  io.run();
  return failed;
}

}  // namespace sweep::launch
