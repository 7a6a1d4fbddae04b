// Texts that tell people and programs that an answer is of a rehearsal on phantom GPUs (schema/rehearsal.h).
// The texts are empty for a sweep that was measured.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "schema/result_row.h"

namespace sweep::answers {

std::string rehearsed_banner(bool rehearsed);  // HTML for the top of a page
std::string rehearsed_line(bool rehearsed);    // under text, newline included
// The share of the modelled kernel time of these results that is guessed, newline included; empty where none says.
std::string guessed_line(std::span<const std::optional<double>> shares);
void mark_rehearsed(Table&);  // a column `rehearsed` of 1, for CSV and JSON

}  // namespace sweep::answers
