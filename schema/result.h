// Result: the verdict over all records of an attempt: an outcome with its metrics.
#pragma once
#include <string>

#include "schema/metrics.h"
#include "schema/outcome.h"
#include "schema/progress.h"

namespace sweep {

struct Result {
  i64 attempt = 0;
  std::string trial_id;
  Outcome outcome = Outcome::kCrash;
  std::optional<OomKind> oom_kind;
  std::string reason;       // a sentence: cause, rank, phase; empty for ok
  std::optional<i64> rank;  // of the earliest cause
  std::optional<Phase> phase;
  std::string evidence;  // JSON: testimonies that decided it, log tails
  Metrics metrics;
  i64 finished_unix_ns = 0;
};

}  // namespace sweep
