// Keeping the packed columns: once enough entries are unpacked, the blocks they belong to are written anew, in
// the transaction that made them unpacked. Unpacked entries are those in the table `loose`: what their blocks hold is out of
// date.
#include <algorithm>
#include <map>

#include "base/expected.h"
#include "orchestrator/store/packed_column.h"
#include "orchestrator/store/rows.h"
#include "schema/columns.h"

namespace sweep::store {
namespace {

// The origin of a row of a block: its place in the old block, or among the rows read anew.
struct Origin {
  i64 entry;
  std::size_t at;
  bool fresh;
};

using OldBlock = std::map<std::string, std::string, std::less<>>;  // bytes of each column

OldBlock read_block(Transaction& work, i64 sweep, i64 block) {
  OldBlock out;
  auto rows = work.rows("SELECT name, data FROM packed WHERE sweep = ? AND block = ?", sweep, block);
  while (rows.next()) out.emplace(rows.get<std::string>(0), rows.blob(1));
  return out;
}

// The old column as it was; absent: every value is the default.
std::optional<PackedColumn> old_column(Transaction& work, const OldBlock& old, std::string_view name) {
  const auto it = old.find(name);
  if (it == old.end()) return std::nullopt;
  auto parsed = PackedColumn::parse(it->second);
  if (!parsed) work.refuse(Error{std::string(kPackedDamaged), ErrorKind::kUnreadable});
  return parsed;
}

// Rows in order of their entries: the old ones that are still valid, and those read anew.
std::vector<Origin> merged(const std::optional<PackedColumn>& old_entries, const std::vector<i64>& unpacked,
                           const std::vector<i64>& fresh) {
  std::vector<Origin> out;
  for (std::size_t at = 0; old_entries && at < old_entries->size(); ++at) {
    const ColumnValue word = old_entries->at(at);
    const auto* entry = std::get_if<i64>(&word);
    if (entry && !std::ranges::binary_search(unpacked, *entry)) out.push_back({*entry, at, false});
  }
  for (std::size_t at = 0; at < fresh.size(); ++at) out.push_back({fresh[at], at, true});
  std::ranges::sort(out, {}, &Origin::entry);
  return out;
}

void write_column(Transaction& work, i64 sweep, i64 block, std::string_view name,
                  const std::vector<Value>& values, const Value& absent) {
  if (std::ranges::all_of(values, [&](const Value& v) { return v == absent; })) return;
  if (Statement* insert = work.ready("INSERT INTO packed(sweep, name, block, data) VALUES (?, ?, ?, ?)")) {
    const std::string bytes = pack_column(values);
    insert->put(1, sweep);
    insert->put(2, name);
    insert->put(3, block);
    sqlite3_bind_blob64(insert->handle(), 4, bytes.data(), bytes.size(), SQLITE_STATIC);
    work.finish(*insert);
  }
}

// unpacked: of this block, ascending.
void pack_block(Transaction& work, const Selects& selects, i64 sweep, i64 block,
                const std::vector<i64>& unpacked) {
  const OldBlock old = read_block(work, sweep, block);
  std::vector<i64> fresh_entries;
  const auto fresh = result_rows(
      work, selects, "+p.sweep = ?1 AND p.key IN (SELECT entry FROM loose WHERE entry BETWEEN ?2 AND ?3)",
      {sweep, unpacked.front(), unpacked.back()}, &fresh_entries);
  const auto rows = merged(old_column(work, old, "entry"), unpacked, fresh_entries);
  if (work.failed()) return;
  work.run("DELETE FROM packed WHERE sweep = ? AND block = ?", sweep, block);
  std::vector<Value> values;
  values.reserve(rows.size());
  for (const Origin& row : rows) values.emplace_back(row.entry);
  write_column(work, sweep, block, "entry", values, {});
  for (const sweep::Column& column : columns()) {
    const auto before = old_column(work, old, column.key);
    values.clear();
    for (const Origin& row : rows) {
      if (row.fresh)
        values.push_back(column.get(fresh[row.at]));
      else
        values.push_back(before && row.at < before->size() ? value_of(before->at(row.at))
                                                           : column.default_value);
    }
    write_column(work, sweep, block, column.key, values, column.default_value);
  }
}

}  // namespace

void pack(Transaction& work, const Selects& selects, i64 most_unpacked) {
  if (work.one<i64>("SELECT count(*) FROM loose").value_or(0) <= most_unpacked) return;
  std::map<std::pair<i64, i64>, std::vector<i64>> blocks;
  {
    auto rows = work.rows(
        "SELECT p.sweep, l.entry FROM loose l JOIN plan_entry p ON p.key = l.entry ORDER BY l.entry");
    while (rows.next())
      blocks[{rows.get<i64>(0), rows.get<i64>(1) >> kPackedBlockBits}].push_back(rows.get<i64>(1));
  }
  for (const auto& [place, unpacked] : blocks) pack_block(work, selects, place.first, place.second, unpacked);
  work.run("DELETE FROM loose");
}

}  // namespace sweep::store
