// InFlightAttempts: the attempts of an allocation that have not ended, with what was reported of each. It
// turns outbox bytes into one batch for the store, and decides the result of each attempt whose end was
// reported.
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
  ingest::AttemptReports reports;
  // Its ranks were started; else it waits in the inbox.
  bool started = false;
};

struct FinishedAttempt {
  InFlightAttempt in_flight;
  Result result;
};

class InFlightAttempts {
 public:
  void add(Attempt attempt, PlanEntry entry, ingest::AttemptReports known = {}, bool started = false);
  std::size_t size() const { return attempts_.size(); }
  std::vector<Attempt> attempts() const;
  // The longest time that one of them may take once it runs.
  double longest_s() const;
  // Nodes that they need side by side.
  i64 nodes() const { return nodes_; }
  // Predicted for all of them, in node-seconds.
  double seconds() const { return seconds_; }

  struct Note {
    std::string text;
    std::optional<i64> attempt;  // the attempt that it is about
  };
  struct IngestedChunk {
    store::IngestBatch batch;
    std::vector<FinishedAttempt> finished;
    std::vector<NodeOut> nodes_out;
    // Notes for people: damaged lines, nodes that were not left clean, data over TCP sockets.
    std::vector<Note> notes;
  };
  // Reads whole lines from bytes found at `offset`. Attempts whose end was reported are taken out.
  IngestedChunk ingest_chunk(const std::string& allocation, std::uint64_t offset, std::string_view bytes);

  // Takes out what an ended allocation left unfinished.
  std::vector<InFlightAttempt> abandon();

 private:
  void apply(ingest::Message&, IngestedChunk&);
  void apply_record(RankRecord&, IngestedChunk&);
  void apply_end(const AttemptEnd&, IngestedChunk&);
  InFlightAttempt* find(i64 attempt);
  void count(const InFlightAttempt&, i64 sign);

  // The key is the attempt's number.
  std::map<i64, InFlightAttempt> attempts_;
  // People are told once for an allocation.
  bool told_of_sockets_ = false;
  i64 nodes_ = 0;
  double seconds_ = 0;
};

// How a node was slower than the others when its agent measured it before the first trial; empty: it was not,
// or was not measured.
std::string slow_in_screen(const NodeRecord&);

// The outcome with its metrics: all of them for `ok`, those of memory for the others (a failed attempt has no
// speed).
Result result_of(const InFlightAttempt&);

}  // namespace sweep::run
