// Draft: what the cells of one row say, before it is a trial with a result.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/expected.h"
#include "orchestrator/import/dimensions.h"
#include "orchestrator/import/layout.h"
#include "schema/records.h"
#include "schema/trial.h"

namespace sweep::imports {

struct Draft {
  Trial trial;
  Metrics metrics;
  std::string status, state, reason, oom_kind;
  nlohmann::json labels = nlohmann::json::object();
  Stated stated;
  OwnDimensions dimensions;
  std::optional<ModelSpec> spec;  // all dimensions of the model, in one cell
  bool command = false;           // the row says that a command ran
};

// nullopt: the trial has not finished, or gives no answer. Without a word for it: ok where a rate, a time or memory was
// measured.
Expected<std::optional<Outcome>> outcome_of(const Draft&);
// A trial that did not end ok keeps its memory only.
Result result_of(Outcome, const Draft&, const std::string& trial_id);
// Error: figures of a row that cannot all be true. The row ended ok, and its layout is completed. tokens_known: a step
// trains on global_batch_size x seq_len.
Expected<void> figures_are_possible(const Trial&, const Metrics&, bool tokens_known);

}  // namespace sweep::imports
