// ExcludedHosts: the hosts that are not requested now, and until when. A host that was lost once waits for a
// moment, as an sshd that restarts is back in seconds; one in quarantine waits longer each time, or until the
// end of the run. Its times come from its caller.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "orchestrator/run/clock.h"
#include "orchestrator/run/quarantine.h"

namespace sweep::run {

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
    return quarantine_.slow(host, why);
  }
  std::vector<std::string> unclean(const Hosts& hosts, const AttemptEnd& end) {
    return quarantine_.unclean(hosts, end);
  }
  // An allocation of these hosts was lost without a result.
  std::vector<std::string> lost(const Hosts&, const std::string& reason, Clock::Point now);
  // Ends the quarantine of hosts whose time is up; returns their names.
  std::vector<std::string> release_due(Clock::Point now);

  // Hosts that are paused and are not in quarantine.
  std::vector<std::string> cooling(Clock::Point now) const;
  std::vector<std::string> quarantined() const { return quarantine_.hosts(); }
  // Both.
  std::vector<std::string> avoided(Clock::Point now) const;

 private:
  Limits limits_;
  Quarantine quarantine_;
  std::map<std::string, Clock::Point> cooling_until_;
  // Only those that come back.
  std::map<std::string, Clock::Point> quarantined_until_;
};

}  // namespace sweep::run
