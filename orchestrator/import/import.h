// Import: a CSV of measurements made elsewhere -> trials with results, each with the line it came from. It
// refuses what is ambiguous, with file and line. Rates and MFU are derived in metrics/.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/imported_row.h"

namespace sweep::imports {

struct Options {
  std::string shown_as;             // the file's name in errors
  std::string source = {};          // its lasting name, in PlanEntry::source; empty: the same
  std::vector<std::string> map;     // --map, as map_columns takes them
  std::vector<std::string> set;     // "AXIS=VALUE": what the file does not say, for every row
  std::vector<std::string> models;  // "LABEL=NAME" of the catalogue, or "LABEL=config.json"
  bool leave_rest = false;
};

struct Imported {
  std::vector<ImportedRow> rows;          // rows in the order of the file
  std::vector<std::string> notes;         // messages for people
  i64 left_out = 0;                       // rows without an answer: pending, cancelled
  std::vector<UnansweredRow> unanswered;  // rows left out that name a configuration
};

Expected<Imported> read(std::string_view text, const Options&);

// The model's dimensions are known: rates become FLOP/s and MFU.
bool knows_dimensions(const ModelSpec&);

}  // namespace sweep::imports
