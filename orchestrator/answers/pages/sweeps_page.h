// The page that lists the sweeps of a database, for `sweep serve`: it is asked for anew by itself.
#pragma once
#include <span>
#include <string>

#include "schema/result_row.h"

namespace sweep::answers {

// sweeps: a row for each, its name first; links: the address of the page of each.
std::string sweeps_html(Table sweeps, std::span<const std::string> links, const std::string& db);

}  // namespace sweep::answers
