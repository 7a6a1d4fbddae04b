// The results of a sweep in full. Axes and metrics of packed entries come from the packed columns, of which only those
// are stored that differ from their default somewhere: the tables would be asked for a hundred and more columns of each row.
#include <algorithm>
#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>

#include "orchestrator/store/packed_blocks.h"
#include "orchestrator/store/packed_column.h"
#include "orchestrator/store/rows.h"
#include "schema/labels.h"

namespace sweep::store {

namespace {

// Gives the member the value of a word; false says that its type has no such value.
template <class T>
bool read_word(T& member, const ColumnValue& word) {
  if constexpr (requires { member.reset(); }) {
    if (word.index() != 0) return read_word(member.emplace(), word);
    member.reset();
    return true;
  } else {
    const auto* text = std::get_if<std::string_view>(&word);
    if constexpr (AxisChoice<T>) {
      const auto choice = text ? choice_from<T>(*text) : std::nullopt;
      if (choice) member = *choice;
      return choice.has_value();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (text) member = *text;
      return text != nullptr;
    } else {
      const auto* whole = std::get_if<i64>(&word);
      const auto* real = std::get_if<double>(&word);
      if (text || (real && std::integral<T>)) return false;
      member = whole ? static_cast<T>(*whole) : real ? static_cast<T>(*real) : T{};  // NULL: not resolved
      return true;
    }
  }
}

// It has the row to be filled for each kept row of a block, in their order.
using RowsOfBlock = std::span<ResultRow* const>;

// Gives each row its value of a column; false says that the column holds what the member cannot.
using ColumnReader = std::function<bool(const KeptRows&, const PackedColumn&, RowsOfBlock)>;

template <class Part, class T>
ColumnReader reader_of(Part ResultRow::*part, T Part::*member) {
  return [part, member](const KeptRows& block, const PackedColumn& packed, RowsOfBlock rows) {
    const auto& words = packed.words();
    const auto values = std::make_unique<T[]>(words.size());
    for (std::size_t i = 0; i < words.size(); ++i)
      if (!read_word(values[i], words[i])) return false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      T& value = rows[i]->*part.*member;
      if (!words.empty())
        value = values[packed.code(block.rows[i])];
      else if (!read_word(value, packed.at(block.rows[i])))
        return false;
    }
    return true;
  };
}

// Each axis and metric has a reader under the name of its column.
const std::unordered_map<std::string_view, ColumnReader>& column_readers() {
  static const std::unordered_map<std::string_view, ColumnReader> table = {
#define AXIS(type, key, ...) {#key, reader_of(&ResultRow::trial, &Trial::key)},
#define CHOICE(Enum, key, ...) {#key, reader_of(&ResultRow::trial, &Trial::key)},
#define METRIC(type, key, ...) {#key, reader_of(&ResultRow::metrics, &Metrics::key)},
#include "schema/fields.def"
#undef METRIC
#undef CHOICE
#undef AXIS
  };
  return table;
}

// The packed values of an axis that a program does not know are NULL, and its trial has one all the same.
bool knows_all_axes(Transaction& work, i64 sweep) {
  auto rows = work.rows("SELECT data FROM packed WHERE sweep = ? AND name = 'labels'", sweep);
  while (rows.next()) {
    const auto packed = PackedColumn::parse(rows.blob(0));
    if (!packed || packed->words().empty()) return false;
    for (const ColumnValue& word : packed->words())
      if (const auto* text = std::get_if<std::string_view>(&word);
          text && text->find(kLabelAxes) != std::string_view::npos)
        return false;
  }
  return true;
}

// Fills the rows of the blocks' kept rows. False: the columns cannot be read so.
bool fill_rows(Transaction& work, i64 sweep, const std::vector<KeptRows>& blocks,
               const std::vector<ResultRow*>& rows) {
  std::vector<RowsOfBlock> rows_of;
  for (std::size_t at = 0; const KeptRows& block : blocks) {
    rows_of.push_back(std::span(rows).subspan(at, block.rows.size()));
    at += block.rows.size();
  }
  auto columns = work.rows("SELECT name, block, data FROM packed WHERE sweep = ?", sweep);
  while (columns.next()) {
    const auto column = column_readers().find(columns.text(0));
    if (column == column_readers().end()) continue;
    const auto block = std::ranges::lower_bound(blocks, columns.get<i64>(1), {}, &KeptRows::number);
    if (block == blocks.end() || block->number != columns.get<i64>(1)) return false;
    const auto packed = PackedColumn::parse(columns.blob(2));
    if (!packed || packed->size() != block->size ||
        !column->second(*block, *packed, rows_of[static_cast<std::size_t>(block - blocks.begin())]))
      return false;
  }
  return true;
}

// Each entry's row; empty: entries and rows are not the same.
std::vector<ResultRow*> rows_by_entry(const std::vector<i64>& entries, StoredResults& found) {
  if (entries.size() != found.rows.size()) return {};
  std::vector<ResultRow*> out(entries.size());
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    const auto at = std::ranges::lower_bound(entries, found.places[i].stored);
    if (at == entries.end() || *at != found.places[i].stored) return {};
    out[static_cast<std::size_t>(at - entries.begin())] = &found.rows[i];
  }
  return out;
}

}  // namespace

std::vector<ResultRow> results_of_sweep(Transaction& work, const Selects& selects, i64 sweep) {
  std::vector<i64> entries;
  const auto blocks = kept_rows(work, sweep, entries);
  const auto in_full = [&] { return result_rows(work, selects, "p.sweep = ?", {sweep}); };
  if (!blocks || entries.empty() || !knows_all_axes(work, sweep)) return in_full();
  StoredResults found;
  found.rows.reserve(entries.size());
  read_results(work, nullptr, "p.sweep = ? AND p.key NOT IN (SELECT entry FROM loose)", {sweep}, found);
  const auto rows = rows_by_entry(entries, found);
  if (rows.empty() || !fill_rows(work, sweep, *blocks, rows)) return in_full();
  read_results(work, &selects, "p.key IN (SELECT entry FROM loose) AND +p.sweep = ?", {sweep}, found);
  put_in_run_order(found);
  return std::move(found.rows);
}

}  // namespace sweep::store
