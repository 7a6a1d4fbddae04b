// Prices: what stands beside figures in USD: the price used, its date, and whether it is old.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/result_row.h"

namespace sweep::answers {

std::string today();  // ISO date, UTC

// "h100-sxm-80gb: 55.04 USD per node and hour (AWS ..., 2026-11-09)", with a warning where it is older than a
// year.
std::string price_sentence(const std::string& hardware, double usd_per_node_hour, std::string_view today);
// One sentence for each hardware and price behind these rows' costs.
std::vector<std::string> price_sentences(std::span<const ResultRow> rows, std::string_view today);
std::vector<std::string> price_sentences(std::span<const ResultRow* const> rows, std::string_view today);

}  // namespace sweep::answers
