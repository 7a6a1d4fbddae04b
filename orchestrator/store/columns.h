// The columns that follow from schema/fields.def: axes in table trial, metrics in table result, and the view
// `results`.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/store/record_sql.h"
#include "schema/metrics.h"
#include "schema/records.h"
#include "schema/trial.h"

namespace sweep::store {

struct Column {
  std::string name;
  std::string declaration;  // type, NOT NULL and frozen default as ALTER TABLE ADD COLUMN takes them
  std::string absent;       // SQL literal that stands for it where the table lacks the column
};
const std::vector<Column>& axis_columns();
const std::vector<Column>& metric_columns();

std::string sql_name(std::string_view identifier);

// Select lists over `trial t` and `result r`; columns the file lacks (opened read-only) come as their
// default.
struct Selects {
  std::string axes, metrics;
  TableColumns columns;  // columns of the tables that hold records
};
// Reads the columns' existence inside a transaction.
Selects selects_for(Transaction&);

// The SQL of a migration whose new tables have their axes and metrics from the start: ALTER TABLE reads the whole schema for each column,
// which made a new file take 0.1 s.
std::string with_columns(std::string sql);

// Adds missing columns and, when it lacks one or differs, the view `results`.
void complete_columns(Transaction&);

// INSERT of a trial that leaves an existing one alone: id, spec, axes.
const std::string& insert_trial_sql();
// The fields of a result, then its metrics.
const std::vector<StoredField>& result_fields();

void put_axes(Statement&, int first, const Trial&);
void put_metrics(Statement&, int first, const Metrics&);
// Both return the column after the last one read.
int read_axes(const Rows&, int first, Trial&);
int read_metrics(const Rows&, int first, Metrics&);

}  // namespace sweep::store
