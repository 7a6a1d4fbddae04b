#include "orchestrator/cli/compare_sides.h"

#include "orchestrator/answers/statistics/compare.h"
#include "orchestrator/answers/statistics/filter.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

// NAME in --db, FILE.db (its latest sweep) or FILE.db:NAME.
SweepSelector side_of(const std::string& word, const std::string& db) {
  std::error_code ec;
  if (std::filesystem::is_regular_file(word, ec)) return {word, std::nullopt};
  const auto colon = word.rfind(':');
  if (colon != std::string::npos && std::filesystem::is_regular_file(word.substr(0, colon), ec))
    return {word.substr(0, colon), word.substr(colon + 1)};
  return {db, word};
}

Expected<CompareSide> read_side(const SweepSelector& from, const std::vector<std::string>& only) {
  auto opened = open_sweep(from, store::Mode::kReadOnly);
  if (!opened) return tl::unexpected(opened.error());
  auto rows = opened->store->results(opened->sweep.id);
  if (!rows) return tl::unexpected(rows.error());
  auto kept = answers::keep_only(std::move(*rows), only);
  if (!kept) return tl::unexpected(kept.error());
  auto nodes = opened->store->environments(opened->sweep.id);
  if (!nodes) return tl::unexpected(nodes.error());
  std::error_code ec;
  return CompareSide{std::filesystem::weakly_canonical(from.db, ec), std::move(opened->sweep),
                     std::move(*kept), std::move(*nodes)};
}

}  // namespace

Expected<CompareSide> read_compare_side(const std::string& word, const std::string& db,
                                        const std::vector<std::string>& only) {
  return read_side(side_of(word, db), only);
}

Expected<CompareSide> read_latest_side(const std::string& db) {
  return read_side({db, std::nullopt}, {});
}

bool is_same_sweep(const CompareSide& a, const CompareSide& b) {
  return a.file == b.file && a.sweep.id == b.sweep.id;
}

std::string rehearsed_sides(const std::vector<const CompareSide*>& sides) {
  std::vector<std::string> letters;
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (is_rehearsal(sides[i]->sweep.name)) letters.push_back(answers::side_letter(i));
  return answers::in_words(letters);
}

}  // namespace sweep::cli
