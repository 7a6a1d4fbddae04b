// Flights: the attempts that are under way, with what has been testified about each. It turns outbox bytes
// into one store batch and knows when an attempt's verdict is due.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "orchestrator/ingest/ingest.h"
#include "orchestrator/store/store.h"
#include "schema/attempt.h"
#include "schema/plan_entry.h"

namespace sweep::run {

struct Flight {
  Attempt attempt;
  PlanEntry entry;
  ingest::Testimony testimony;
  bool started = false;  // its ranks were; else it only waited in the inbox
};

struct Landing {
  Flight flight;
  Result result;
};

class Flights {
 public:
  void add(Attempt attempt, PlanEntry entry, ingest::Testimony known = {}, bool started = false);
  std::size_t size() const { return flights_.size(); }
  std::vector<Attempt> attempts() const;
  i64 nodes() const { return nodes_; }         // that they need, one beside the other
  double seconds() const { return seconds_; }  // predicted of all of them, in node-seconds

  struct Absorbed {
    store::IngestBatch batch;
    std::vector<Landing> landed;
    std::vector<std::string> notes;  // damage, taint, the agent's last word
    bool tainted = false;            // a process could not be ended: no more work for this allocation
  };
  // Reads whole lines from bytes found at `offset`; attempts that are complete leave the flights.
  Absorbed absorb(const std::string& allocation, std::uint64_t offset, std::string_view bytes);

  // Takes every flight out: what an ended allocation left unfinished.
  std::vector<Flight> abandon();

 private:
  void apply(ingest::Message&, Absorbed&);
  void count(const Flight&, i64 sign);
  std::map<i64, Flight> flights_;
  bool said_sockets_ = false;  // once for an allocation
  i64 nodes_ = 0;
  double seconds_ = 0;
};

// How a node stood out before the first trial, by its record; empty: it did not, or nobody looked.
std::string slow_in_screen(const NodeRecord&);

// The verdict with its metrics: all of them for `ok`, only memory for the others (a failed attempt has no
// speed).
Result verdict(const Flight&);

}  // namespace sweep::run
