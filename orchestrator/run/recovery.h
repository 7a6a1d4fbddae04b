// Recovery: what a crash of an earlier orchestrator left behind is ended, ingested and closed, so that every
// attempt has exactly one verdict before new work starts.
#pragma once
#include "orchestrator/run/observer.h"
#include "orchestrator/store/store.h"
#include "schema/expected.h"

namespace sweep::run {

Expected<void> recover(store::Store&, i64 sweep, Observer&);

// The result of an attempt that left no testimony.
Result abandoned(const Attempt&, Outcome, const std::string& reason);

}  // namespace sweep::run
