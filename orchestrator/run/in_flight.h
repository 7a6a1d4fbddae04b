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

struct InFlightAttempt {
  Attempt attempt;
  PlanEntry entry;
  ingest::AttemptReports testimony;
  bool started = false;  // its ranks were; else it only waited in the inbox
};

struct FinishedAttempt {
  InFlightAttempt flight;
  Result result;
};

class InFlightAttempts {
 public:
  void add(Attempt attempt, PlanEntry entry, ingest::AttemptReports known = {}, bool started = false);
  std::size_t size() const { return flights_.size(); }
  std::vector<Attempt> attempts() const;
  i64 nodes() const { return nodes_; }         // that they need, one beside the other
  double seconds() const { return seconds_; }  // predicted of all of them, in node-seconds

  struct IngestedChunk {
    store::IngestBatch batch;
    std::vector<FinishedAttempt> landed;
    std::vector<std::string> notes;  // damage, taint, the agent's last word
    bool unclean = false;            // a process could not be ended: no more work for this allocation
  };
  // Reads whole lines from bytes found at `offset`; attempts that are complete leave the flights.
  IngestedChunk ingest_chunk(const std::string& allocation, std::uint64_t offset, std::string_view bytes);

  // Takes every flight out: what an ended allocation left unfinished.
  std::vector<InFlightAttempt> abandon();

 private:
  void apply(ingest::Message&, IngestedChunk&);
  void count(const InFlightAttempt&, i64 sign);
  std::map<i64, InFlightAttempt> flights_;
  bool said_sockets_ = false;  // once for an allocation
  i64 nodes_ = 0;
  double seconds_ = 0;
};

// How a node stood out before the first trial, by its record; empty: it did not, or nobody looked.
std::string slow_in_screen(const NodeRecord&);

// The verdict with its metrics: all of them for `ok`, only memory for the others (a failed attempt has no
// speed).
Result verdict(const InFlightAttempt&);

}  // namespace sweep::run
