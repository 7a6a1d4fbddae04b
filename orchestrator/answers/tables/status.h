// Status: the progress of a sweep as text. Pure functions of counts, without clock or terminal.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema/outcome.h"
#include "schema/trial.h"

namespace sweep::answers {

struct StatusView {
  std::string sweep;
  i64 total = 0;  // trials of the plan, pruned ones included, retired ones not
  i64 pending = 0, running = 0;
  std::vector<std::pair<Outcome, i64>> by_outcome;  // final answers
  i64 ran_unsupported = 0;                          // unsupported ones that the plan had admitted
  std::optional<double> elapsed_s, left_s;          // nullopt: not known
  struct Best {
    std::string metric;
    double value = 0;
    std::string configuration;  // text of setting_text()
    std::string trial_id;
  };
  std::optional<Best> best;
  std::string gpu_hours;               // held so far, of what limit; empty: nothing was
  std::vector<std::string> shortcuts;  // trials stopped early, audits of pruning: one sentence each
  std::vector<std::string> now;        // running work, one short line each
  std::vector<std::string> held;       // allocations with their nodes: one short line each
  std::vector<std::string> excluded;   // hosts that get no work in any run: name and reason
  std::vector<std::string> events;     // the last ones, oldest first
};

struct StatusCounts {
  i64 ok = 0, oom = 0, pruned = 0, unsupported = 0, failed = 0;
  i64 done() const { return ok + oom + unsupported + failed; }
};
// Pruned are those that the plan did not admit, the unsupported ones of them too; what is none of the others failed.
StatusCounts counts(const StatusView&);

// One line for a terminal that redraws it, cut to width (0: unlimited), without newline:
//   [########----]  62 %  31/50  28 ok  2 oom  1 failed  4 running  about 3 min 20 s left  best 12.3k
//   tokens/s (DP8 TP2)
std::string status_bar(const StatusView&, std::size_t width);
// Several lines for `sweep status`.
std::string status_block(const StatusView&, std::size_t width);
// One plain line for a log or a pipe, newline included: no bar, no colour, no redrawing.
std::string status_line(const StatusView&);

}  // namespace sweep::answers
