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
struct Hello {
  i64 pid = 0;
  std::string host, version;
  i64 incarnation = 0;
};
struct Started {
  i64 attempt = 0;
  std::vector<i64> pids;
  i64 unix_ns = 0;
};
// A node of the allocation that gets no more work.
struct NodeOut {
  i64 node = 0;
  std::string why;
  // Its agent is gone or out of reach; else it is there, and its attempts fail.
  bool lost = false;
};
struct Bye {
  std::string reason;
};
using Message = std::variant<Hello, NodeRecord, Started, RankRecord, RankExit, AttemptEnd, NodeOut, Bye>;

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
