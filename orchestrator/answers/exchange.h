// Reports of what an import and a merge brought into a database.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/store/sweep_book.h"
#include "schema/imported_row.h"

namespace sweep::answers {

struct ImportReport {
  std::string file, sweep, db;
  store::ImportCounts counts;
  std::map<Outcome, i64> outcomes;  // configurations by outcome; the last row of each counts
  i64 with_mfu = 0;                 // configurations whose MFU could be computed
  i64 left_out = 0;                 // rows without an answer
  std::vector<std::string> notes;
};
// Computes the metrics that follow from the rates of rows that ended ok, and counts. usd_per_node_hour: the site's own
// prices by hardware; what a row states goes before them. Error: a rate above what the hardware can do.
Expected<ImportReport> derive_imported(std::vector<ImportedRow>&,
                                       const std::map<std::string, double>& usd_per_node_hour);
std::string import_text(const ImportReport&);
nlohmann::json import_json(const ImportReport&);

struct MergeReport {
  std::string into;
  std::vector<std::string> from;
  std::vector<store::MergeCounts> counts;  // the counts of each file
};
std::string merge_text(const MergeReport&);
nlohmann::json merge_json(const MergeReport&);

}  // namespace sweep::answers
