#include "schema/agent_call.h"

#include <fmt/format.h>

namespace sweep {

std::vector<std::string> agent_words(const AgentCall& call) {
  std::vector<std::string> out{"run"};
  const auto add = [&](const char* option, std::string value) {
    out.emplace_back(option);
    out.push_back(std::move(value));
  };
  const auto flag = [&](bool given, const char* option) {
    if (given) out.emplace_back(option);
  };
  const auto seconds = [&](const char* option, const std::optional<double>& value) {
    if (value) add(option, fmt::format("{}", *value));
  };
  flag(call.detach, "--detach");
  flag(call.join, "--join");
  add("--spool", call.spool);
  add("--allocation", call.allocation);
  add("--incarnation", std::to_string(call.incarnation));
  add("--slots", std::to_string(call.slots));
  if (!call.rank_program.empty()) add("--rank-program", call.rank_program);
  if (call.parent_pid > 0) add("--parent-pid", std::to_string(call.parent_pid));
  seconds("--idle-limit", call.idle_limit_s);
  seconds("--contact-limit", call.contact_limit_s);
  seconds(kTimeLimitOption, call.time_limit_s);
  flag(call.bind, "--bind");
  if (!call.screen.empty()) add("--screen", call.screen);
  flag(!call.zygote, "--no-zygote");
  flag(!call.pid_namespace, "--no-namespace");
  if (call.nodes > 1) add("--nodes", std::to_string(call.nodes));
  if (!call.peers.empty()) add("--peers", call.peers);
  seconds("--lease", call.lease_s);
  if (!call.interface.empty()) add("--interface", call.interface);
  return out;
}

}  // namespace sweep
