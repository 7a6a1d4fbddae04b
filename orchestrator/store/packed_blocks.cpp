#include "orchestrator/store/packed_blocks.h"

#include "orchestrator/store/packed_column.h"

namespace sweep::store {

std::optional<std::vector<KeptRows>> kept_rows(Transaction& work, i64 sweep, std::vector<i64>& entries) {
  std::vector<i64> unpacked;
  {
    auto rows = work.rows("SELECT entry FROM loose ORDER BY entry");
    while (rows.next()) unpacked.push_back(rows.get<i64>(0));
  }
  std::vector<KeptRows> out;
  auto next = unpacked.begin();
  auto rows =
      work.rows("SELECT block, data FROM packed WHERE sweep = ? AND name = 'entry' ORDER BY block", sweep);
  while (rows.next()) {
    const auto packed = PackedColumn::parse(rows.blob(1));
    if (!packed) return std::nullopt;
    KeptRows& block = out.emplace_back(KeptRows{rows.get<i64>(0), packed->size(), {}});
    for (std::size_t row = 0; row < packed->size(); ++row) {
      const ColumnValue word = packed->at(row);
      const auto* entry = std::get_if<i64>(&word);
      if (!entry) continue;
      while (next != unpacked.end() && *next < *entry) ++next;
      if (next != unpacked.end() && *next == *entry) continue;
      block.rows.push_back(static_cast<std::uint32_t>(row));
      entries.push_back(*entry);
    }
  }
  return out;
}

}  // namespace sweep::store
