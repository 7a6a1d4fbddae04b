// Functions that the grid tests share: reading a text, its error, and all entries of its expansion.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "orchestrator/grid/document.h"
#include "orchestrator/grid/grid.h"
#include "tests/support/error_matchers.h"

namespace sweep::grid {

inline const std::string kHead = "name: t\nmodel: llama3-8b\n";

// The error of a text that must be refused.
inline Error error_of(const std::string& text, const ReadOptions& options = {}) {
  return error_in(read_text(text, "g.yaml", options));
}

struct Expanded {
  ExpandCounts counts;
  std::vector<PlanEntry> entries;
  std::vector<PlanEntry> with_rule(const std::string& rule) const {
    std::vector<PlanEntry> out;
    for (const PlanEntry& entry : entries) {
      if (entry.rule == rule) out.push_back(entry);
    }
    return out;
  }
  std::vector<PlanEntry> admitted() const { return with_rule(""); }
};

inline Expanded expanded(const std::string& text, std::uint64_t list_dropped = 1000) {
  Expanded out;
  const auto grid = read_text(text, "g.yaml");
  EXPECT_TRUE(grid) << (grid ? "" : grid.error().message);
  if (!grid) return out;
  const auto counts = expand(
      *grid, [&out](PlanEntry&& entry) { return out.entries.push_back(std::move(entry)), true; },
      list_dropped);
  EXPECT_TRUE(counts) << (counts ? "" : counts.error().message);
  if (counts) out.counts = *counts;
  return out;
}

}  // namespace sweep::grid
