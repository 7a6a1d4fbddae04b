// Measured: how a result was measured, as sentences: our step or an import, on which nodes, by which devices
// and clocks, over which transport, in how many steps. It prints what ranks reported, and names what they did
// not report.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "schema/provenance.h"
#include "schema/result_row.h"

namespace sweep::answers {

// One statement per line, without line ends; provenance nullptr: the database does not say.
std::vector<std::string> measured_lines(const ResultRow&, const Provenance*);
nlohmann::json measured_json(const ResultRow&, const Provenance*);

// A node's devices in short: "8 x NVIDIA H100 80GB HBM3", else the processor; empty: not told.
std::string devices_of(const Environment&);

}  // namespace sweep::answers
