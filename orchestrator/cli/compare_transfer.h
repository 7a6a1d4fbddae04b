// `sweep compare --transfer`: how far A's order of configurations holds in B.
#pragma once
#include "orchestrator/answers/statistics/transfer.h"
#include "orchestrator/cli/compare_sides.h"

namespace sweep::cli {

struct TransferCommand {
  bool wanted = false, json = false, csv = false;
  std::string by, match, chart;  // lists with commas; a file, or empty
  answers::TransferOptions options;
};

void add_transfer_options(CLI::App& command, TransferCommand&);
int print_transfer(Io&, const CompareSide& a, const CompareSide& b, const TransferCommand&);

}  // namespace sweep::cli
