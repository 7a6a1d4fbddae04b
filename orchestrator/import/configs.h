// Configurations from CSV: rows that say what would run, for prediction; measured rows may say how it went.
// Dimensions of the model come from the catalogue or from the row's own columns. Columns that mean nothing
// here are kept as they are.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/imported_row.h"

namespace sweep::imports {

struct ConfigOptions {
  std::string shown_as;             // the file's name in errors
  std::string hardware;             // a name of the catalogue
  std::vector<std::string> models;  // "LABEL=NAME" of the catalogue
};

struct Configs {
  std::vector<std::string> columns;
  std::vector<ConfigRow> rows;
  std::vector<std::string> notes;  // columns that mean nothing here, and whose name is nearly one that does
};

// Defaults of what is not stated: 1 for degrees, one sequence, 4096 tokens, bf16, sp with tp. Error: a value that cannot be;
// two columns for one axis or dimension.
Expected<Configs> read_configs(std::string_view text, const ConfigOptions&);

}  // namespace sweep::imports
