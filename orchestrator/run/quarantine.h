// Quarantine: hosts that get no more work, each with its reason. A host that could not be cleaned is out at
// once and for the run; one that lost allocations without a result, at the second, until it is let back in: it
// is out again at the next one. It guesses no culprit among several hosts, and has no clock. Names are those by
// which a launcher avoids hosts.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "schema/records.h"

namespace sweep::run {

using Hosts = std::map<i64, std::string>;  // of an allocation, by node

class Quarantine {
 public:
  // A host that stood out in the look at the nodes.
  std::vector<std::string> slow(const std::string& host, const std::string& why) { return add(host, why); }
  // These give a sentence for each host that is out from now on.
  std::vector<std::string> unclean(const Hosts&, const AttemptEnd&);
  std::vector<std::string> lost(const Hosts&, const std::string& reason);

  // It may be asked for again, if it is out for lost allocations alone.
  bool let_back(const std::string& host);
  // Times that it went out for lost allocations.
  int times_out(const std::string& host) const;
  std::vector<std::string> hosts() const;

 private:
  std::vector<std::string> add(const std::string& host, const std::string& why);
  std::map<std::string, std::string> reasons_;
  std::map<std::string, int> strikes_;  // allocations lost there without a result
  std::set<std::string> may_return_;    // of those that are out
};

}  // namespace sweep::run
