// PackedColumn: the values of one column of a block of results as the database holds them, and reading them
// back without making a string of each. Refuses bytes that are not whole. They are kept because rows of
// eighty columns take about ten microseconds each: the best of 100,000 trials takes 6 ms from two packed
// columns.
// Form, little-endian: u32 count; then 'd' u32 words, each 0 (NULL) | 1 i64 | 2 f64 | 3 u32 length, bytes; u8 width (0, 1,
// 2, 4), count codes of that width | 'i' count i64, the smallest one standing for NULL | 'r' count f64, NaN for NULL.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schema/result_row.h"

namespace sweep::store {

// Said of a block that cannot be read.
inline constexpr std::string_view kPackedDamaged =
    "the packed columns of the database are damaged; they follow from its other tables, so `sqlite3 FILE "
    "'DELETE FROM packed; INSERT OR IGNORE INTO loose SELECT key FROM plan_entry'` makes it whole";

inline constexpr int kPackedBlockBits = 12;  // 4096 entries a block, as schema/sqlite/001_initial.sql says

using ColumnValue = std::variant<std::monostate, i64, double, std::string_view>;
Value value_of(const ColumnValue&);

std::string pack_column(std::span<const Value>);

class PackedColumn {
 public:
  // Points into the bytes.
  static std::optional<PackedColumn> parse(std::string_view bytes);

  std::size_t size() const { return count_; }
  // The distinct values and each row's place among them; no words: every row has its own.
  const std::vector<ColumnValue>& words() const { return words_; }
  std::uint32_t code(std::size_t row) const;
  ColumnValue at(std::size_t row) const;

 private:
  bool has_words_for_all() const;

  std::size_t count_ = 0;
  char form_ = 'd';
  std::uint8_t width_ = 0;
  std::vector<ColumnValue> words_;
  const char* rows_ = nullptr;
};

}  // namespace sweep::store
