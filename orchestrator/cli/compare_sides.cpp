#include "orchestrator/cli/compare_sides.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/statistics/filter.h"
#include "schema/codec.h"
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

// The values of one fact over all nodes of a side.
std::set<std::string> values_of(const CompareSide& side, const std::string& fact) {
  std::set<std::string> out;
  for (const Environment& node : side.nodes) {
    if (fact == "host") out.insert(answers::safe_text(node.host));
    const auto facts = to_json(node.facts);
    if (facts.contains(fact)) out.insert(answers::safe_text(dump(facts[fact])));
  }
  return out;
}

}  // namespace

Expected<CompareSide> read_compare_side(const std::string& word, const std::string& db,
                                        const std::vector<std::string>& only) {
  const SweepSelector from = side_of(word, db);
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

bool is_same_sweep(const CompareSide& a, const CompareSide& b) {
  return a.file == b.file && a.sweep.id == b.sweep.id;
}

void print_differences(Io& io, const CompareSide& a, const CompareSide& b) {
  for (const char* fact :
       {"host", "gpus", "cpu", "driver", "driver_cuda", "nccl", "libtorch", "kernel", "version", "build"}) {
    const auto before = values_of(a, fact), after = values_of(b, fact);
    if (before == after) continue;
    io.err << fmt::format("{}: {} in A, {} in B\n", fact,
                          before.empty() ? "unknown" : fmt::format("{}", fmt::join(before, ", ")),
                          after.empty() ? "unknown" : fmt::format("{}", fmt::join(after, ", ")));
  }
}

std::string rehearsed_sides(const CompareSide& a, const CompareSide& b) {
  const bool first = is_rehearsal(a.sweep.name), second = is_rehearsal(b.sweep.name);
  return first && second ? "A and B" : first ? "A" : second ? "B" : "";
}

}  // namespace sweep::cli
