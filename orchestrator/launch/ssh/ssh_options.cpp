#include "orchestrator/launch/ssh/ssh_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "schema/hardware_kinds.h"

namespace sweep::launch {
namespace {

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

template <class T>
const Setting<T>& first_stated(const Setting<T>& own, const Setting<T>& of_all) {
  return own.stated ? own : of_all;
}

}  // namespace

std::string by_hand(const SshOptions& options, const std::string& host) {
  std::string out;
  if (!options.config->empty()) out += "-F " + shell_word(*options.config) + " ";
  if (!options.user->empty()) out += "-l " + shell_word(*options.user) + " ";
  if (options.port.stated) out += fmt::format("-p {} ", *options.port);
  return out + host;
}

bool serves(const SshHost& host, const std::string& hardware, i64 node) {
  if (host.hardware.empty()) return !is_mixed(hardware);
  return host.hardware == kind_of_node(hardware, node);
}

i64 usable_hosts(const std::vector<SshHost>& hosts, const std::string& hardware) {
  const i64 kinds = std::ssize(kinds_of(hardware));
  i64 each = std::ssize(hosts);  // hosts of the kind that has the fewest
  for (i64 kind = 0; kind < kinds; ++kind)
    each = std::min<i64>(each, std::ranges::count_if(
                                   hosts, [&](const SshHost& host) { return serves(host, hardware, kind); }));
  return each * kinds;
}

Expected<SshOptions> ssh_options_from(const SshSettings& settings) {
  if (settings.hosts->empty())
    return fail("--on ssh needs hosts: launch: {ssh: {hosts: [a, b]}} in the grid, or in a site profile");
  SshOptions out{settings};
  for (const SshHostSettings& host : *settings.hosts)
    out.all_hosts.push_back(
        {*host.host, *host.hardware, *first_stated(host.slots, settings.slots),
         host.price_per_hour.if_stated(), *first_stated(host.interface, settings.interface),
         *first_stated(host.agent, settings.agent), *first_stated(host.rank, settings.rank)});
  SWEEP_GET(auto config, config_file(*settings.config));
  out.config.value = std::move(config);
  return out;
}

}  // namespace sweep::launch
