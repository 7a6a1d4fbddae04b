#include "orchestrator/answers/statistics/compare_sides.h"

#include <algorithm>

#include "base/fail.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/filter.h"
#include "schema/rehearsal.h"

namespace sweep::answers {

Expected<CompareSide> read_compare_side(store::Store& store, store::SweepRow sweep,
                                        const std::filesystem::path& file,
                                        const std::vector<std::string>& only) {
  SWEEP_GET(auto rows, store.results(sweep.id));
  SWEEP_GET(auto kept, keep_only(std::move(rows), only));
  SWEEP_GET(auto nodes, store.environments(sweep.id));
  std::error_code ec;
  return CompareSide{std::filesystem::weakly_canonical(file, ec), std::move(sweep), std::move(kept),
                     std::move(nodes)};
}

bool is_same_sweep(const CompareSide& a, const CompareSide& b) {
  return a.file == b.file && a.sweep.id == b.sweep.id;
}

Expected<std::vector<Comparison>> compare_sides(std::span<const CompareSide> sides,
                                                const CompareOptions& options) {
  std::vector<SweepRows> others;
  for (const CompareSide& side : sides.subspan(1)) others.emplace_back(side.rows);
  auto found = compare_all(sides[0].rows, others, options);
  if (!found) return found;
  for (std::size_t i = 0; i < found->size(); ++i) {
    if (!(*found)[i].pairs.empty() || (*found)[i].unanswered + (*found)[i].reused > 0) continue;
    return fail(
        "'{}' and '{}' have no configuration in common ({} and {} rows); `sweep compare A B "
        "--transfer` says in which axes they differ and compares across these",
        safe_text(sides[0].sweep.name), safe_text(sides[i + 1].sweep.name), sides[0].rows.size(),
        sides[i + 1].rows.size());
  }
  return found;
}

Expected<std::vector<const ResultRow*>> trials_named(std::span<const ResultRow> rows,
                                                     std::span<const std::string> prefixes) {
  std::vector<const ResultRow*> out;
  for (const std::string& prefix : prefixes) {
    const auto begins = [&](const ResultRow& row) { return row.trial_id.starts_with(prefix); };
    const auto found = std::ranges::find_if(rows, begins);
    if (found == rows.end())
      return fail("no trial of the sweep has an id that begins with '{}'", safe_text(prefix));
    if (std::ranges::count_if(rows, begins) > 1)
      return fail("several trials have an id that begins with '{}'; give more of it", safe_text(prefix));
    out.push_back(&*found);
  }
  return out;
}

TransferNames transfer_names(const CompareSide& a, const CompareSide& b) {
  if (a.sweep.name != b.sweep.name) return {a.sweep.name, b.sweep.name};
  return {a.sweep.name + " in A", b.sweep.name + " in B"};
}

std::string machine_differences(std::span<const CompareSide> sides) {
  std::vector<std::span<const Environment>> nodes;
  for (const CompareSide& side : sides) nodes.emplace_back(side.nodes);
  return machine_differences(nodes);
}

std::string rehearsed_sides(std::span<const CompareSide> sides) {
  std::vector<std::string> letters;
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (is_rehearsal(sides[i].sweep.name)) letters.push_back(side_letter(i));
  return in_words(letters);
}

std::string rehearsed_sides_line(std::span<const CompareSide> sides) {
  const std::string letters = rehearsed_sides(sides);
  return letters.empty() ? "" : letters + ": " + rehearsed_line(true);
}

void mark_rehearsed_sides(Table& table, std::span<const CompareSide> sides) {
  const std::string letters = rehearsed_sides(sides);
  if (letters.empty()) return;
  table.columns.emplace_back("rehearsed");
  for (auto& row : table.rows) row.emplace_back(letters);
}

}  // namespace sweep::answers
