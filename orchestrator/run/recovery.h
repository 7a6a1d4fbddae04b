// Recovery: what a crash of an earlier orchestrator left behind is adopted where it can live on; else it is
// ended, ingested and closed, so that every attempt has exactly one verdict before new work starts.
#pragma once
#include <vector>

#include "base/expected.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/run/held_allocation.h"
#include "orchestrator/run/observer.h"
#include "orchestrator/store/store.h"

namespace sweep::run {

// `by`: who may adopt, under the name that its allocations carry; nullptr: everything is closed, or, with `leave`, what may
// live on by itself is taken in as far as it has come, and left open.
struct Adopter {
  launch::Launcher* launcher = nullptr;
  std::string name{};
  bool leave = false;
};
Expected<std::vector<HeldAllocation>> recover(store::Store&, i64 sweep, Observer&, const Adopter& by = {});

// When an allocation's agent last said anything, by the outbox; 0: never.
i64 last_word_unix_ns(const std::filesystem::path& spool);

// The result of an attempt that left no testimony.
Result abandoned(const Attempt&, Outcome, const std::string& reason);

}  // namespace sweep::run
