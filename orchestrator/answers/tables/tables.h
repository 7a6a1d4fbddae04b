// Tables: rows of results as text for a terminal or as Markdown, from the row type that exports use. Only
// what varies is shown; NULL is `-`; headers carry the units. CSV and JSON of the same Table are written by
// export/.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/fields.h"

namespace sweep::answers {

struct TableOptions {
  std::vector<std::string> metrics = {"step_ms",
                                      "tokens_per_s_gpu",
                                      "mfu",
                                      "peak_allocated_bytes",
                                      "cost_per_mt",
                                      "useful_tokens_per_s",
                                      "useful_tokens_per_s_gpu",
                                      "useful_cost_per_mt"};
  std::vector<std::string> always;  // axes to show though they do not vary
  bool trial_id = true;
  bool outcome = true;       // outcome and reason; the reason only if some row has one
  std::size_t max_rows = 0;  // 0: all
};

// The columns to show, with raw values: trial, varying axes, outcome, metrics that at least one row has,
// reason.
Expected<Table> select(std::span<const ResultRow> rows, const TableOptions& = {});

// Aligned text. width 0: unlimited; else long text is cut, then columns are left out from the right and named
// below.
std::string to_text(const Table&, std::size_t width = 0);
std::string to_markdown(const Table&);
// `humanize` false (answers to a person's own SQL): values as stored, headers as named.
std::string to_text_raw(const Table&, std::size_t width = 0);

// Heads with units and cells as people read them, for other forms of page.
struct ShownTable {
  std::vector<std::string> heads;
  std::vector<bool> numbers;  // one per column: no text in it
  std::vector<std::string> units;
  std::vector<std::vector<std::string>> rows;
};
ShownTable shown_cells(const Table&);

// Adds a column's name, and the unit where it is a grid's own axis.
void add_head(Table&, const Field&);

}  // namespace sweep::answers
