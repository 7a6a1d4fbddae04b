// The sides of a comparison: the results of sweeps and their nodes, and what the answers say of the sides themselves.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/compare.h"
#include "orchestrator/answers/statistics/transfer.h"
#include "orchestrator/store/store.h"

namespace sweep::answers {

struct CompareSide {
  std::filesystem::path file;  // the database
  store::SweepRow sweep;
  std::vector<ResultRow> rows;
  std::vector<Environment> nodes;
};

// `only`: conditions of filter.h on the rows.
Expected<CompareSide> read_compare_side(store::Store&, store::SweepRow, const std::filesystem::path& file,
                                        const std::vector<std::string>& only);

bool is_same_sweep(const CompareSide& a, const CompareSide& b);

// The first side against each other one. Error: one of them has no configuration in common with it.
Expected<std::vector<Comparison>> compare_sides(std::span<const CompareSide>, const CompareOptions&);

// The trials whose ids begin with these prefixes, in that order. Error: none has it, or several have.
Expected<std::vector<const ResultRow*>> trials_named(std::span<const ResultRow>,
                                                     std::span<const std::string> prefixes);

// The names of the sides in a picture are those of the sweeps; two sweeps of one name are told apart by their letter.
TransferNames transfer_names(const CompareSide& a, const CompareSide& b);

std::string machine_differences(std::span<const CompareSide>);

// "A", "B", "A and B"; empty: all were measured.
std::string rehearsed_sides(std::span<const CompareSide>);
// The same as a line under a text, and as a column of a table; nothing where all were measured.
std::string rehearsed_sides_line(std::span<const CompareSide>);
void mark_rehearsed_sides(Table&, std::span<const CompareSide>);

}  // namespace sweep::answers
