// Suggest: defaults for batch, context and recomputation, by what was measured.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "orchestrator/store/store.h"
#include "schema/result_row.h"

namespace sweep::answers {

// The fastest that ran of one model on so many ranks of one hardware, and how far its batch and context went.
struct Suggestion {
  ResultRow best;
  i64 ran = 0;                       // trials that ran there
  std::optional<i64> largest_batch;  // largest micro-batch that ran with the settings of the best
  std::optional<i64> batch_beyond;   // smallest that ran out of memory with them
  std::optional<i64> longest;        // longest sequence that ran
  std::optional<i64> longest_kept;   // longest that ran without recomputation
  bool padding = false;              // some that ran had padding: the rate counts useful tokens
};
// One for each model, hardware and number of ranks. Empty: nothing ran.
std::vector<Suggestion> suggestions(std::vector<ResultRow>);
// The measured rows of a model ("": of any), without rehearsals and without the sweep of this name.
Expected<std::vector<ResultRow>> measured_rows(store::Store&, const std::string& model,
                                               const std::string& but_sweep = {});
std::string suggestions_yaml(std::span<const Suggestion>);  // lines for `base` of a grid
nlohmann::json suggestions_json(std::span<const Suggestion>);

}  // namespace sweep::answers
