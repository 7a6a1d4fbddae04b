// The page of one trial, with all that the database knows of it: settings, outcome and why, where the time of its steps
// went by rank, memory, load, the ranks' records, attempts with their evidence, logs and events. What is not known has
// no section.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/answers/tables/explain.h"
#include "schema/provenance.h"
#include "schema/sweep_options.h"

namespace sweep::answers {

struct TrialPage {
  std::string sweep, question;
  SweepOptions options;
  std::string db, made;   // the path that the command named; when, and by which version
  std::string back = {};  // address of the sweep's own page; empty: there is none beside this one
  ExplainView view;
  std::optional<ResultRow> row;  // the trial with its final answer
  std::optional<i64> attempt;    // the one that the records are of: the final one, else the last
  store::StoredRecords records;
  std::optional<Provenance> provenance;
};
// Reads the trial whose id begins with the prefix. Error: none does, or several.
Expected<TrialPage> trial_page(store::Store&, const store::SweepRow&, const std::string& id_prefix);

std::string trial_html(const TrialPage&);

}  // namespace sweep::answers
