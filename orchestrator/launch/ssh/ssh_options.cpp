#include "orchestrator/launch/ssh/ssh_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "orchestrator/launch/slurm/slurm_script.h"

namespace sweep::launch {
namespace {

std::optional<double> real(const nlohmann::json& from, const char* name) {
  return from.contains(name) ? std::optional<double>(from.at(name).get<double>()) : std::nullopt;
}

SshHost host_from(const nlohmann::json& item, const nlohmann::json& section) {
  SshHost host;
  host.interface = section.value("interface", "");
  host.slots = section.value("slots", i64{1});
  host.agent = section.value("agent", "");
  host.rank = section.value("rank", "");
  if (item.is_string()) {
    host.name = item.get<std::string>();
    return host;
  }
  host.name = item.at("host").get<std::string>();
  host.hardware = item.value("hardware", "");
  host.slots = item.value("slots", host.slots);
  host.interface = item.value("interface", host.interface);
  host.agent = item.value("agent", host.agent);
  host.rank = item.value("rank", host.rank);
  host.price_per_hour = real(item, "price_per_hour");
  return host;
}

// ssh reads it on this machine.
Expected<std::string> config_file(std::string path) {
  const char* home = std::getenv("HOME");
  if (path.starts_with("~/") && home != nullptr) path = home + path.substr(1);
  if (!path.empty() && ::access(path.c_str(), R_OK) != 0)
    return fail(
        fmt::format("launch.ssh.config: {} cannot be read: {}; name a file as `ssh -F` takes it, or leave "
                    "config out for ~/.ssh/config",
                    path, std::strerror(errno)));
  return path;
}

}  // namespace

std::string by_hand(const SshOptions& options, const std::string& host) {
  std::string out;
  if (!options.config.empty()) out += "-F " + shell_word(options.config) + " ";
  if (!options.user.empty()) out += "-l " + shell_word(options.user) + " ";
  if (options.port > 0) out += fmt::format("-p {} ", options.port);
  return out + host;
}

bool serves(const SshHost& host, const std::string& hardware) {
  return host.hardware.empty() || host.hardware == hardware;
}

Expected<SshOptions> ssh_options_from(const nlohmann::json& section) {
  SshOptions out;
  if (!section.is_object() || !section.contains("hosts"))
    return fail("--on ssh needs hosts: launch: {ssh: {hosts: [a, b]}} in the grid, or in a site profile");
  std::set<std::string> names;
  for (const auto& item : section.at("hosts")) {
    out.hosts.push_back(host_from(item, section));
    const std::string& name = out.hosts.back().name;
    if (name.empty() || name[0] == '-')
      return fail(fmt::format("launch.ssh.hosts: '{}' is no name of a host", name));
    if (!names.insert(name).second) return fail(fmt::format("launch.ssh.hosts names {} twice", name));
  }
  out.user = section.value("user", "");
  out.port = section.value("port", i64{0});
  auto config = config_file(section.value("config", ""));
  if (!config) return tl::unexpected(config.error());
  out.config = std::move(*config);
  out.directory = section.value("directory", out.directory);
  out.lease_s = section.value("lease_seconds", out.lease_s);
  out.silence_s = section.value("silence_seconds", out.silence_s);
  return out;
}

}  // namespace sweep::launch
