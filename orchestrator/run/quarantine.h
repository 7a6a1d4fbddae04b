// Quarantine: hosts that get no more work, each with its reason. A host that could not be cleaned stays in it
// until the end of the run. A host that lost allocations without a result enters it at the second loss, and
// after it was released at each further one. A loss is not attributed to a host if the allocation has several. It has no
// clock. Names are those by which a launcher avoids hosts.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "schema/records.h"

namespace sweep::run {

// The host names of an allocation, by node.
using Hosts = std::map<i64, std::string>;

class Quarantine {
 public:
  // A host that was slower than the others when it was measured.
  std::vector<std::string> slow(const std::string& host, const std::string& why) { return add(host, why); }
  // These return a sentence for each host that is in quarantine from now on.
  std::vector<std::string> unclean(const Hosts&, const AttemptEnd&);
  std::vector<std::string> lost(const Hosts&, const std::string& reason);

  // Whether it may be requested again: it was in quarantine for lost allocations alone.
  bool release(const std::string& host);
  // Quarantines so far for lost allocations.
  int times(const std::string& host) const;
  std::vector<std::string> hosts() const;

 private:
  std::vector<std::string> add(const std::string& host, const std::string& why);
  // The key is the host.
  std::map<std::string, std::string> reasons_;
  // Allocations lost there without a result.
  std::map<std::string, int> losses_;
  // Hosts that are in quarantine for losses alone.
  std::set<std::string> may_return_;
};

}  // namespace sweep::run
