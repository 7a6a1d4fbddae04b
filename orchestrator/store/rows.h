// Trials, plan entries, results and records as rows of the database: written once and read back. Private to store/.
#pragma once
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/store/columns.h"
#include "orchestrator/store/record_sql.h"
#include "schema/attempt.h"
#include "schema/plan_entry.h"
#include "schema/records.h"
#include "schema/result_row.h"
#include "schema/run_order.h"

namespace sweep::store {

// Specs parsed once per distinct text: a sweep has few models and many trials.
using SpecCache = std::map<std::string, ModelSpec, std::less<>>;
const ModelSpec& spec_of(SpecCache&, std::string_view json);
// The dimensions of a model of which nothing is said, as JSON without a single quote; those that are null are left out.
std::string usual_dimensions();

// SELECT ... FROM plan_entry p JOIN trial t; column 0 is the entry's key.
std::string plan_entry_select(const Selects&);
PlanEntry read_plan_entry(const Rows&, SpecCache&);

// The key of the entry's trial, made when it is new.
i64 ensure_trial(Transaction&, const PlanEntry&);
// Adds or updates the entry; changes() of the work tells whether anything was.
void write_entry(Transaction&, i64 sweep, i64 trial, const PlanEntry&);

// Trials with their final answers, and where each stands in the run order, which names its plan entry.
struct StoredResults {
  std::vector<ResultRow> rows;
  std::vector<RunPlace> places;
};
void put_in_run_order(StoredResults&);
// Adds those that `where` says: a condition over plan_entry p, with a parameter for each of the keys. `values`: nullptr
// leaves axes and metrics at their defaults.
void read_results(Transaction&, const Selects* values, std::string_view where,
                  std::initializer_list<i64> keys, StoredResults&);
// The same as rows in full, in the run order. `entries`: gets the plan entry of each row.
std::vector<ResultRow> result_rows(Transaction&, const Selects&, std::string_view where,
                                   std::initializer_list<i64> keys, std::vector<i64>* entries = nullptr);

// Every trial of the sweep's plan, as result_rows() says.
std::vector<ResultRow> results_of_sweep(Transaction&, const Selects&, i64 sweep);

// Writes what ranks and agents reported of an attempt into the database, and reads it back.
// A second copy of a record replaces the first, samples included.
void write_record(Transaction&, const RankRecord&);
void write_exit(Transaction&, const RankExit&);
void write_end(Transaction&, const AttemptEnd&);
void write_started(Transaction&, i64 attempt, i64 unix_ns);
void write_node(Transaction&, std::string_view allocation, const NodeRecord&);
void write_result(Transaction&, const Result&);

std::vector<RankRecord> read_records(Transaction&, const TableColumns&, i64 attempt);
std::vector<RankExit> read_exits(Transaction&, const TableColumns&, i64 attempt);
std::vector<NodeRecord> read_nodes(Transaction&, const TableColumns&, std::string_view allocation);
std::optional<AttemptEnd> read_end(Transaction&, const TableColumns&, i64 attempt);

// The request of an attempt, as it was posted: all but its id and its trial. What cannot be read refuses the transaction.
void read_request(const Rows&, int column, Attempt&);

// Keeping the packed columns.
// Is called at the end of every transaction that changes results or plan entries: packs the unpacked entries
// once there are more than `most_unpacked`.
void pack(Transaction&, const Selects&, i64 most_unpacked);

}  // namespace sweep::store
