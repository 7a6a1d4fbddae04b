// The best configurations (statistics/best.h) as a table, as text, as JSON, and as a grid file.
#pragma once
#include <span>
#include <string>

#include "orchestrator/answers/statistics/best.h"

namespace sweep::answers {

// The groups as one table: keys, what differs between the results (varying()), the metric, ties, memory.
Table best_table(std::span<const Field> differ, std::span<const BestOfGroup>, const BestOptions&);
// People's text: the table, then ties and what was left out, then the configuration to paste.
std::string best_text(std::span<const Field> differ, std::span<const BestOfGroup>, const BestOptions&,
                      std::size_t width);

// A grid file with exactly this configuration: `name`, `model` (catalogue name, else its dimensions) and
// `base`.
std::string as_grid_yaml(const ResultRow&, const GridForm& = {});
// All winners as one grid file: alone a base, several its `include`, each under comments that say what it
// won.
std::string best_yaml(std::span<const BestOfGroup>, const BestOptions&);
// The answer as one JSON array.
std::string best_json(std::span<const BestOfGroup>, const BestOptions&);

}  // namespace sweep::answers
