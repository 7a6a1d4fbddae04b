// Trials and plan entries as rows: written once per configuration and place in a plan, and read back.
#pragma once
#include <map>
#include <string>

#include "orchestrator/store/columns.h"
#include "schema/plan_entry.h"

namespace sweep::store {

// Specs parsed once per distinct text: a sweep has few models and many trials.
using SpecCache = std::map<std::string, ModelSpec, std::less<>>;
const ModelSpec& spec_of(SpecCache&, std::string_view json);

// SELECT ... FROM plan_entry p JOIN trial t; column 0 is the entry's key.
std::string plan_entry_select(const Selects&);
PlanEntry read_plan_entry(const Rows&, SpecCache&);

// The key of the entry's trial, made when it is new.
i64 ensure_trial(Transaction&, const PlanEntry&);
// Adds or updates the entry; changes() of the work tells whether anything was.
void write_entry(Transaction&, i64 sweep, i64 trial, const PlanEntry&);

}  // namespace sweep::store
