// The sides of `sweep compare`: the results of a sweep, as people name it, and its nodes.
#pragma once
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/transfer.h"
#include "orchestrator/cli/command.h"

namespace sweep::cli {

struct CompareSide {
  std::filesystem::path file;
  store::SweepRow sweep;
  std::vector<ResultRow> rows;
  std::vector<Environment> nodes;
};

// `word`: the name of a sweep in `db`, FILE.db (its latest sweep) or FILE.db:NAME. `only`: conditions of
// answers/statistics/filter.h.
Expected<CompareSide> read_compare_side(const std::string& word, const std::string& db,
                                        const std::vector<std::string>& only);

// The latest sweep of a database.
Expected<CompareSide> read_latest_side(const std::string& db);

bool is_same_sweep(const CompareSide& a, const CompareSide& b);

// "A", "B", "A and B"; empty: all were measured.
std::string rehearsed_sides(const std::vector<const CompareSide*>& sides);

// `sweep compare --transfer`: how far A's order of configurations holds in B.
struct TransferCommand {
  bool wanted = false, json = false, csv = false;
  std::string by, match, chart;  // lists with commas; a file, or empty
  answers::TransferOptions options;
};

void add_transfer_options(CLI::App& command, TransferCommand&);
int print_transfer(Io&, const CompareSide& a, const CompareSide& b, const TransferCommand&);

}  // namespace sweep::cli
