// Mapping: what each column of a file means and in which unit, decided from its header, the requests of --map
// and the names this tool and the known files use. It refuses a column it cannot place, two columns for one
// field, and a number without a stated unit.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/import/csv.h"
#include "orchestrator/import/dimensions.h"
#include "schema/columns.h"

namespace sweep::imports {

enum class Meaning {
  kIgnored,
  kModel,
  kAxis,
  kMetric,
  kOutcome,
  kState,
  kReason,
  kOomKind,
  kLabel,
  kLabels,
  kDimension,
  kDimensions,
  kRehearsed
};

struct Target {
  Meaning meaning = Meaning::kIgnored;
  std::string column;             // its name in the file
  const Column* field = nullptr;  // the field of kAxis and kMetric
  std::string label;              // the label of kLabel
  double factor = 1;              // factor from the file's unit to the field's
  Dimension dimension = {};       // the dimension of kDimension
};

// The column of all dimensions of the model, a JSON object, as `sweep export csv` writes it.
inline constexpr std::string_view kModelDimensions = "model_dimensions";

// The field that a column of a known file holds, and its unit, by the name in lower case; nullptr: no such
// name. nanotron and the Ultra-Scale Playbook's chart come first.
struct Alias {
  std::string_view column, field, unit;
};
const Alias* find_alias(std::string_view column);

// A published file that its columns tell: facts that its text says of every row, and the models behind its labels.
struct KnownFile {
  std::string_view name;
  std::vector<std::string_view> columns;
  std::vector<std::pair<std::string_view, std::string_view>> set, models;
};

const KnownFile& playbook();

struct Mapping {
  std::vector<Target> targets;     // one per column
  std::vector<std::string> notes;  // messages: columns left out, units taken from a name
  bool has(std::string_view field) const;
};

// maps: "COLUMN=FIELD", "COLUMN=FIELD:UNIT", "COLUMN=label:NAME", "COLUMN=-" (left out).
// leave_rest: columns that cannot be placed are left out, with a note.
Expected<Mapping> map_columns(const CsvRow& header, std::span<const std::string> maps, bool leave_rest,
                              const std::string& shown_as);

}  // namespace sweep::imports
