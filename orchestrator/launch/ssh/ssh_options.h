// SshOptions: hosts that are reached by ssh, and what they have, as `launch.ssh` of a grid file spells it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "schema/trial.h"

namespace sweep::launch {

struct SshHost {
  std::string name;      // as ssh takes it: an alias of the configuration, a name, an address
  std::string hardware;  // catalogue name; empty: runs whatever the hosts without one run
  i64 slots = 1;         // trials side by side; 1: a trial has its nodes alone
  std::optional<double> price_per_hour;
  std::string interface;    // for agents and ranks; empty: the one ssh came in by
  std::string agent, rank;  // programs on the host; empty: the agent is copied, the rank is where ours is
};

// Whether trials of this hardware run there.
bool serves(const SshHost&, const std::string& hardware);

struct SshOptions {
  std::vector<SshHost> hosts;
  std::string user;
  i64 port = 0;                              // 0: as ssh is configured
  std::string config;                        // of ssh; empty: ~/.ssh/config and the machine's
  std::string directory = "~/.cache/sweep";  // on the hosts
  double lease_s = 15;     // after so long without a message, an agent takes another one for lost
  double silence_s = 900;  // after so long without contact, agents end their ranks, and the run loses them
};

// What follows `ssh` when a person tries the same by hand: the host, and what the grid says beside ssh's own
// configuration.
std::string by_hand(const SshOptions&, const std::string& host);

// Of the JSON of a grid's section (validated by the grid room).
Expected<SshOptions> ssh_options_from(const nlohmann::json& section);

}  // namespace sweep::launch
