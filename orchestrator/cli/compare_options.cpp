#include "orchestrator/cli/compare_options.h"

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

Expected<answers::CompareSide> read_side(const SweepSelector& from, const std::vector<std::string>& only) {
  SWEEP_GET(auto opened, open_sweep(from, store::Mode::kReadOnly));
  return answers::read_compare_side(*opened.store, std::move(opened.sweep), from.db, only);
}

}  // namespace

Expected<answers::CompareSide> read_compare_side(const std::string& word, const std::string& db,
                                                 const std::vector<std::string>& only) {
  return read_side(side_of(word, db), only);
}

Expected<answers::CompareSide> read_latest_side(const std::string& db) {
  return read_side({db, std::nullopt}, {});
}

}  // namespace sweep::cli
