// What the ranks of a command stated about its report and its log, over all of them; and why it has no timings.
// Private to ingest/.
#pragma once
#include <map>
#include <string>

#include "orchestrator/ingest/ingest.h"

namespace sweep::ingest {

struct ProgramFacts {
  i64 timed_ranks = 0;    // that reported a timed step
  i64 steps = 0;          // the highest number of steps that a rank counted, warm-up included
  i64 damaged_lines = 0;  // of the reports
  bool memory = false;    // some rank reported its allocator's peak
  bool patterns = false;  // logs were read with log_patterns
  i64 log_lines = 0, unread_bytes = 0;
  std::map<std::string, i64> matches;  // pattern -> lines in which it found a number
};
ProgramFacts program_facts(const Attempt&, const AttemptReports&);

// Of a command's rank that wrote no line of a report: the end of its log speaks of GPU memory. It decides nothing.
bool log_speaks_of_memory(const AttemptReports&, i64 rank);

// REQUIRES: no timed ranks. A sentence: what was found instead, and what to do.
std::string without_timings(const Attempt&, const ProgramFacts&);

// Adds steps_are_of, where some ranks alone reported steps; found and, of an ok one, no_timings, where none did;
// log_speaks_of_memory.
void add_program_evidence(Evidence&, const Attempt&, const AttemptReports&, const Result&);

}  // namespace sweep::ingest
