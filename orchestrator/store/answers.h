// Answers: what people and other rooms ask of a database: progress, results, where they come from, and SQL.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "schema/outcome.h"
#include "schema/provenance.h"
#include "schema/records.h"
#include "schema/result_columns.h"
#include "schema/result_row.h"

namespace sweep::store {

struct StoreFile;

// The work that is left of a sweep, how long the last trials took, and on what.
struct Workload {
  struct Group {  // trials that need this many nodes
    i64 nodes = 1, trials = 0, running = 0;
    double predicted_s = 0;
    i64 unpredicted = 0;
  };
  struct Done {
    std::optional<double> predicted_s;
    double started_s = 0, ended_s = 0;  // times of one allocation's clock
    i64 nodes = 1;
    std::string allocation;
    double took_s() const { return ended_s - started_s; }
  };
  std::vector<Group> to_do;
  std::vector<Done> done;                           // the last measured trials, newest first
  std::vector<std::pair<std::string, i64>> open{};  // allocations at work, with their nodes
};

struct Progress {
  i64 total = 0, pending = 0, running = 0, retired = 0;
  std::vector<std::pair<Outcome, i64>> by_outcome;  // final results of trials in the plan, pruned included
  i64 ran_unsupported = 0;                          // unsupported ones that the plan had admitted
  i64 ended(Outcome) const;
  i64 answered() const;  // is_answer() of schema/outcome.h
};

using sweep::ResultRow;
using sweep::Table;
using sweep::Value;

// Limits for a person's own SQL. `stop` is called while it runs: true ends it.
struct QueryOptions {
  std::vector<std::pair<std::string, std::string>> values =
      {};  // values of :name in the SQL; numbers are bound as numbers
  std::function<bool()> stop = {};
  i64 most_rows = 10'000'000;
  i64 most_bytes = i64{256} << 20;  // limit of the whole answer
  // Limit of SQLite in the whole process: values, sorting, caches; 0: no limit.
  i64 most_heap = 0;
};
inline constexpr std::string_view kStopped = "stopped before the answer was complete";

// The trials that a sweep did not measure to the end, and how often leaving them out was wrong.
struct Shortcuts {
  i64 stopped_early = 0;
  double seconds_saved = 0;
  // Trials that a rule prunes and that were run all the same (schema/audit.h): how many of them fit, and how
  // many are faster than the best of the trials that no rule prunes.
  struct Audited {
    std::string rule;
    i64 trials = 0, fit = 0, faster = 0;
  };
  std::vector<Audited> audited;
};

class Answers {
 public:
  explicit Answers(StoreFile& file) : file_(file) {}

  Expected<Progress> progress(i64 sweep);
  // When the last trial of the plan ended, as the view `results` writes it (UTC); nullopt: none has.
  Expected<std::optional<std::string>> last_result(const std::string& sweep);
  Expected<Workload> workload(i64 sweep);
  Expected<Shortcuts> shortcuts(i64 sweep);
  // Opens the path again once it names another file, for those who read for a long time. A user who may not write the file
  // reads it as it stood, where nobody had it open: once it has changed since, it is opened again. Error: it is gone.
  Expected<void> look_again();
  // Differs from the answer before when anybody has written since.
  Expected<i64> version();

  Expected<std::vector<ResultRow>> results(i64 sweep);  // every trial of the plan, in its order
  // One of them; nullopt: it is not in the plan.
  Expected<std::optional<ResultRow>> result(i64 sweep, const std::string& trial_id);
  // Columns of every trial of the plan, in no promised order; what results() would say of them.
  Expected<ResultColumns> result_columns(i64 sweep, const ColumnSelection&);
  // Rows in full, by `entry` of the columns, in that order.
  Expected<std::vector<ResultRow>> results_of(std::span<const i64> entries);
  // The best `limit` ok trials by a metric, in the order of schema/ranking.h.
  Expected<std::vector<ResultRow>> best(i64 sweep, const std::string& metric, i64 limit);
  // The metric that schema/ranking.h chooses for its results.
  Expected<std::string> usual_metric(i64 sweep);
  Expected<std::optional<Result>> result_of(i64 attempt);
  // The attempt whose outcome is the trial's answer; nullopt: none yet, or the plan's decision alone.
  Expected<std::optional<i64>> final_attempt(i64 sweep, const std::string& trial_id);
  // The sweep that an attempt was made for.
  Expected<std::string> sweep_of(i64 attempt);
  Expected<std::string> find_trial(i64 sweep, std::string_view id_prefix);  // error: none, or several

  // Every node of every allocation that holds a final answer of the sweep, oldest first.
  Expected<std::vector<Environment>> environments(i64 sweep);
  // The provenance of the named trials, in their order; those without a final attempt are left out.
  Expected<std::vector<Provenance>> provenance(i64 sweep, std::span<const std::string> trial_ids);

  // One SELECT, read-only, enforced by an authorizer on a connection that cannot write.
  Expected<Table> query(std::string_view sql, const QueryOptions& options);
  Expected<Table> query(std::string_view sql) { return query(sql, QueryOptions{}); }

 private:
  StoreFile& file_;
};

}  // namespace sweep::store
