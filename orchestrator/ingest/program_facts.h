// ProgramFacts: the statements of a command's ranks about its report and its log, over all of them; and why
// it has no timings. Private to ingest/.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "orchestrator/ingest/ingest.h"

namespace sweep::ingest {

struct ProgramFacts {
  i64 timed_ranks = 0;               // ranks that reported a timed step
  i64 steps = 0;                     // the highest number of steps that a rank counted, warm-up included
  i64 damaged_lines = 0;             // damaged lines of the reports
  i64 other_steps = 0;               // steps of optimizers that are not followed, on the rank with most
  bool memory = false;               // some rank reported its allocator's peak
  bool from_log = false;             // some rank's steps were found in its log
  std::optional<i64> out_of_memory;  // the first rank whose allocator found no memory
  bool patterns = false;             // logs were read with log_patterns
  i64 log_lines = 0, unread_bytes = 0;
  std::map<std::string, i64> matches;  // pattern -> lines in which it found a number
};
ProgramFacts program_facts(const Attempt&, const AttemptReports&);

// True if a command's rank wrote no line of a report and the end of its log mentions GPU memory. It decides
// nothing.
bool log_speaks_of_memory(const AttemptReports&, i64 rank);

// REQUIRES: no timed ranks. A sentence: what was found instead, and what to do.
std::string without_timings(const Attempt&, const ProgramFacts&);

// Adds steps_are_of, where some ranks alone reported steps; found and, of an ok one, no_timings, where none did;
// log_speaks_of_memory.
void add_program_evidence(Evidence&, const Attempt&, const AttemptReports&, const Result&);

}  // namespace sweep::ingest
