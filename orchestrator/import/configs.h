// Configurations from CSV: rows that say what would run, for prediction; measured rows may say how it went.
// Dimensions of the model come from the catalogue or from the row's own columns. Columns that mean nothing
// here are kept as they are.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/imported_row.h"

namespace sweep::imports {

struct ConfigOptions {
  std::string shown_as;             // the file's name in errors
  std::string hardware;             // a name of the catalogue; "": that of the column, else kDefaultHardware
  std::vector<std::string> models;  // "LABEL=NAME" of the catalogue
  bool measured = false;            // its figures are used, so a rehearsed row is refused
};

inline constexpr std::string_view kDefaultHardware = "h100-sxm-80gb";

struct Configs {
  std::string shown_as, hardware;
  std::vector<std::string> columns;
  std::set<std::string_view> axes;  // keys of those that a column holds
  std::vector<ConfigRow> rows;
  std::vector<std::string> notes;  // columns that mean nothing here, and whose name is nearly one that does
};

// Defaults of what is not stated: 1 for degrees, one sequence, 4096 tokens, bf16, sp with tp. Error: a value that cannot be;
// two columns for one axis or dimension; hardware other than the option's, or than an earlier row's.
Expected<Configs> read_configs(std::string_view text, const ConfigOptions&);
// The first trainer that the rows name; "": none does. Error: two of them that are not the same.
Expected<std::string> trainer_of(const Configs&,
                                 const std::function<bool(const std::string&, const std::string&)>& same);

}  // namespace sweep::imports
