// A few columns of all results of a sweep: packed ones as they lie, unpacked entries from the tables.
#include <limits>

#include "base/expected.h"
#include "orchestrator/store/packed_blocks.h"
#include "orchestrator/store/packed_column.h"
#include "orchestrator/store/rows.h"
#include "orchestrator/store/store_file.h"
#include "schema/columns.h"

namespace sweep::store {
namespace {

double number_of(const ColumnValue& word) {
  if (const auto* whole = std::get_if<i64>(&word)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&word)) return *real;
  return std::numeric_limits<double>::quiet_NaN();
}

// Calls each(kept rows, the packed column or nothing where every value is the default) for every block, in
// order.
template <class Each>
void for_each_block(Transaction& work, i64 sweep, std::string_view name, const std::vector<KeptRows>& blocks,
                    const Each& each) {
  auto rows =
      work.rows("SELECT block, data FROM packed WHERE sweep = ? AND name = ? ORDER BY block", sweep, name);
  bool more = rows.next();
  for (const KeptRows& block : blocks) {
    while (more && rows.get<i64>(0) < block.number) more = rows.next();
    if (!more || rows.get<i64>(0) != block.number) {
      each(block, nullptr, std::string_view());
      continue;
    }
    const std::string_view bytes = rows.blob(1);
    const auto packed = PackedColumn::parse(bytes);
    if (!packed || packed->size() != block.size)
      return work.refuse(Error{std::string(kPackedDamaged), ErrorKind::kUnreadable});
    each(block, &*packed, bytes);
  }
}

void append_coded(CodedColumn& out, const KeptRows& block, const PackedColumn* packed,
                  const sweep::Column& field) {
  if (block.rows.empty()) return;
  if (!packed) {
    out.of.insert(out.of.end(), block.rows.size(), out.code_of(field.default_value));
    return;
  }
  if (packed->words().empty()) {
    for (const auto row : block.rows) out.append(value_of(packed->at(row)));
    return;
  }
  constexpr auto kUnseen = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> codes(packed->words().size(), kUnseen);
  for (const auto row : block.rows) {
    std::uint32_t& code = codes[packed->code(row)];
    if (code == kUnseen) code = out.code_of(value_of(packed->words()[packed->code(row)]));
    out.of.push_back(code);
  }
}

void append_numbers(std::vector<double>& out, const KeptRows& block, const PackedColumn* packed) {
  if (!packed) {
    out.insert(out.end(), block.rows.size(), number_of({}));
    return;
  }
  for (const auto row : block.rows) out.push_back(number_of(packed->at(row)));
}

void append_ids(ResultColumns& out, const KeptRows& block, std::string_view bytes) {
  out.held.push_back(std::make_shared<const std::string>(bytes));
  const auto packed = PackedColumn::parse(*out.held.back());  // whole: it was parsed before
  for (const auto row : block.rows) {
    const ColumnValue word = packed->at(row);
    const auto* id = std::get_if<std::string_view>(&word);
    out.trial.push_back(id ? *id : std::string_view());
  }
}

}  // namespace

Expected<ResultColumns> Answers::result_columns(i64 sweep, const ColumnSelection& selection) {
  ResultColumns out = ResultColumns::empty(selection);
  Transaction work(*file_.db, Transaction::kRead);
  const auto blocks = kept_rows(work, sweep, out.entry);
  if (!blocks) return fail(ErrorKind::kUnreadable, "", std::string(kPackedDamaged));
  for_each_block(work, sweep, "trial", *blocks,
                 [&](const KeptRows& block, const PackedColumn* packed, std::string_view bytes) {
                   if (packed)
                     append_ids(out, block, bytes);
                   else
                     out.trial.insert(out.trial.end(), block.rows.size(), std::string_view());
                 });
  const std::size_t packed_rows = out.entry.size();
  for (auto& [name, column] : out.coded) {
    const sweep::Column& field = *find_column(name);
    column.of.reserve(packed_rows);
    for_each_block(work, sweep, name, *blocks,
                   [&, &into = column](const KeptRows& block, const PackedColumn* packed, std::string_view) {
                     append_coded(into, block, packed, field);
                   });
  }
  for (auto& [name, column] : out.numbers) {
    column.reserve(packed_rows);
    for_each_block(work, sweep, name, *blocks,
                   [&into = column](const KeptRows& block, const PackedColumn* packed, std::string_view) {
                     append_numbers(into, block, packed);
                   });
  }
  std::vector<i64> entries;
  const auto unpacked = result_rows(work, file_.selects,
                                    "p.key IN (SELECT entry FROM loose) AND +p.sweep = ?", {sweep}, &entries);
  out.append(unpacked, entries);
  return work.commit(std::move(out));
}

Expected<std::vector<ResultRow>> Answers::results_of(std::span<const i64> entries) {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<ResultRow> out;
  out.reserve(entries.size());
  for (const i64 entry : entries)
    for (auto& row : result_rows(work, file_.selects, "p.key = ?", {entry})) out.push_back(std::move(row));
  return work.commit(std::move(out));
}

}  // namespace sweep::store
