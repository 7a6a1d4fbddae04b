// SshOptions: the settings of hosts reached by ssh, as a run uses them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/launch_settings.h"

namespace sweep::launch {

// A host with what is stated for it, else for all hosts.
struct SshHost {
  std::string name;      // the name for ssh: an alias of the configuration, a name, an address
  std::string hardware;  // catalogue name; empty: runs whatever the hosts without one run
  i64 slots = 1;         // trials side by side; 1: a trial has its nodes alone
  std::optional<double> price_per_hour;
  std::string interface;    // network interface for agents and ranks; empty: the one ssh came in by
  std::string agent, rank;  // programs on the host; empty: the agent is copied, the rank is where ours is
};

// Whether a node of this hardware can be there: the given one of a mix, which takes only hosts that state what they have.
bool serves(const SshHost&, const std::string& hardware, i64 node);
// The most of these hosts that a trial of this hardware can have as its nodes.
i64 usable_hosts(const std::vector<SshHost>&, const std::string& hardware);

struct SshOptions : SshSettings {
  std::vector<SshHost> all_hosts{};
};

// Error: no hosts are stated, or ssh's configuration cannot be read.
Expected<SshOptions> ssh_options_from(const SshSettings&);

// The words after `ssh` for a person who tries the same by hand: the host, and the grid's settings beside
// ssh's own configuration.
std::string by_hand(const SshOptions&, const std::string& host);

}  // namespace sweep::launch
