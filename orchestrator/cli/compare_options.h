// The sides that `sweep compare` and `sweep report --beside` name, and the options of `compare --transfer`.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/statistics/compare_sides.h"
#include "orchestrator/answers/statistics/transfer.h"
#include "orchestrator/cli/command.h"

namespace sweep::cli {

// `word`: the name of a sweep in `db`, FILE.db (its latest sweep) or FILE.db:NAME. `only`: conditions of
// answers/statistics/filter.h.
Expected<answers::CompareSide> read_compare_side(const std::string& word, const std::string& db,
                                                 const std::vector<std::string>& only);

// The latest sweep of a database.
Expected<answers::CompareSide> read_latest_side(const std::string& db);

// `sweep compare --transfer`: how far A's order of configurations holds in B.
struct TransferCommand {
  bool wanted = false, json = false, csv = false;
  std::string by, match, chart;  // lists with commas; a file, or empty
  answers::TransferOptions options;
};

void add_transfer_options(CLI::App& command, TransferCommand&);
int print_transfer(Io&, std::span<const answers::CompareSide>, const TransferCommand&);

}  // namespace sweep::cli
