// The columns that follow from schema/fields.def: axes in table trial, metrics in table result, and the view
// `results`.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/store/db.h"
#include "schema/metrics.h"
#include "schema/trial.h"

namespace sweep::store {

struct Column {
  std::string name;
  std::string declaration;  // type, NOT NULL and frozen default as ALTER TABLE ADD COLUMN takes them
  std::string absent;       // SQL literal that stands for it where the table lacks the column
};
const std::vector<Column>& axis_columns();
const std::vector<Column>& metric_columns();

// The metrics `best` looks up by index; any other is found by reading the sweep's results.
const std::vector<std::string>& ranked_metrics();

bool is_axis(std::string_view);
bool is_metric(std::string_view);
std::string sql_name(std::string_view identifier);
// The value of an axis, of either spelling, in the current words. Table `trial`, as `t`, holds it in the stored spelling.
std::string axis_value_sql(std::string_view name);

// Select lists over `trial t` and `result r`; columns the file lacks (opened read-only) come as their
// default.
struct Selects {
  std::string axes, metrics;
};
// Reads the columns' existence inside a transaction.
Selects selects_for(Transaction&);

// Adds missing columns, indices and, when it lacks a column, the view `results`.
void complete_columns(Transaction&);

// INSERT of a trial that leaves an existing one alone: id, spec, axes.
const std::string& insert_trial_sql();
// INSERT OR REPLACE of a result: attempt, outcome, oom_kind, reason, rank, phase, evidence, finished,
// metrics.
const std::string& insert_result_sql();

void put_axes(Statement&, int first, const Trial&);
void put_metrics(Statement&, int first, const Metrics&);
// Both return the column after the last one read.
int read_axes(const Rows&, int first, Trial&);
int read_metrics(const Rows&, int first, Metrics&);

}  // namespace sweep::store
