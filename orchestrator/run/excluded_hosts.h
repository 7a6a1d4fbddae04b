// ExcludedHosts: the hosts that are not requested now, and until when. A host that was lost once waits for a moment,
// as an sshd that restarts is back in seconds. At the second loss without a result, and after a release at each
// further one, a host enters quarantine, twice as long each time. One that is slow, or unfit, or could not be
// cleaned, stays there until the end of the run; one that the sweep's record excludes, in later runs too, until
// people take it back. A loss is not attributed to a host if the allocation has several. Names are those by which a
// launcher avoids hosts. Its times come from its caller.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/run/clock.h"
#include "schema/node_trust.h"
#include "schema/records.h"

namespace sweep::run {

// The host names of an allocation, by node.
using Hosts = std::map<i64, std::string>;

class ExcludedHosts {
 public:
  struct Limits {
    double cooldown_s = 10;
    double quarantine_initial_s = 300;
  };
  explicit ExcludedHosts(Limits limits) : limits_(limits) {}

  void cool_down(const std::string& host, Clock::Point now);
  // These return a sentence for each host that is in quarantine from now on.
  std::vector<std::string> slow(const std::string& host, const std::string& why) {
    return keep_out(host, why);
  }
  // Attempts fail there that would not fail elsewhere.
  std::vector<std::string> unfit(const std::string& host, const std::string& why) {
    return keep_out(host, why);
  }
  // The sweep's record says that all attempts fail there at once.
  std::vector<std::string> excluded(const std::string& host, const std::string& why);
  std::vector<std::string> unclean(const Hosts&, const AttemptEnd&);
  // The record of how attempts ended on hosts that had an allocation for themselves; an agent judges the nodes of a
  // larger one itself.
  NodeTrust<std::string>& trust() { return trust_; }
  // Whether a retry of the trial goes elsewhere: it failed on the only one of these hosts, where nothing ended well.
  bool failed_on(const Hosts&, const std::string& trial) const;
  // An allocation of these hosts was lost without a result.
  std::vector<std::string> lost(const Hosts&, const std::string& reason, Clock::Point now);
  // Ends the quarantine of hosts whose time is up; returns their names.
  std::vector<std::string> release_due(Clock::Point now);

  // Hosts that are paused and are not in quarantine.
  std::vector<std::string> cooling(Clock::Point now) const;
  std::vector<std::string> quarantined() const;
  // Hosts in quarantine, and hosts that are paused.
  std::vector<std::string> avoided(Clock::Point now) const;

 private:
  struct Host {
    // Allocations lost there without a result.
    int losses = 0;
    std::optional<Clock::Point> cooling_until, quarantined_until;
  };
  // Keeps the host out until the end of the run.
  std::vector<std::string> keep_out(const std::string& host, const std::string& why);

  Limits limits_;
  std::map<std::string, Host> hosts_;
  NodeTrust<std::string> trust_;
};

}  // namespace sweep::run
