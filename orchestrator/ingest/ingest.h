// Spool bytes -> records -> outcome. It knows no SQLite. Records may come twice or out of order; the outcome
// is the same.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "schema/attempt.h"
#include "schema/records.h"
#include "schema/spool.h"

namespace sweep::ingest {

// All that was reported of one attempt, by rank: a second copy of a record replaces the first.
struct AttemptReports {
  std::map<i64, RankRecord> records;
  std::map<i64, RankExit> exits;
  std::optional<AttemptEnd> end;
};

// The typed content of outbox lines, in file order.
using Message =
    std::variant<AgentHello, NodeRecord, AttemptStarted, RankRecord, RankExit, AttemptEnd, NodeOut, Leave>;

struct Batch {
  std::vector<Message> messages;
  std::uint64_t consumed = 0;
  std::vector<std::string> damage;
};
// Untrusted bytes: bad lines become damage, never an exception.
Batch read(std::string_view outbox_bytes);

// The result of an attempt whose `end` is there; judge.cpp lists the rules. ok needs an ok record of every
// rank, and a finite loss that does not rise while the same batch repeats.
Result judge(const Attempt&, const AttemptReports&);

}  // namespace sweep::ingest
