// The blocks of a sweep's packed columns, with the rows of each that are still valid. Private to store/.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "orchestrator/store/db.h"

namespace sweep::store {

struct KeptRows {
  i64 number;                       // number of the block
  std::size_t size;                 // number of rows as packed
  std::vector<std::uint32_t> rows;  // rows of which no newer values are in the tables
};

// The blocks in order and, into `entries`, the entries that are read from them, ascending; nullopt: the packed column
// of entries is damaged.
std::optional<std::vector<KeptRows>> kept_rows(Transaction&, i64 sweep, std::vector<i64>& entries);

}  // namespace sweep::store
