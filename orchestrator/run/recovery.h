// Recovery: allocations that a crashed orchestrator left open are adopted where they can live on. The others
// are ended, their outboxes stored and closed, so that every attempt has exactly one outcome before new work
// starts.
#pragma once
#include <vector>

#include "base/expected.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/run/held_allocation.h"
#include "orchestrator/run/observer.h"
#include "orchestrator/store/store.h"

namespace sweep::run {

// The launcher that may adopt running allocations. Without one, all are closed; with `leave`, those that may
// still run are stored as far as they have come, and stay open.
struct Adopter {
  launch::Launcher* launcher = nullptr;
  // The name that its allocations have in the database.
  std::string name{};
  bool leave = false;
};
Expected<std::vector<HeldAllocation>> recover(store::Store&, i64 sweep, Observer&, const Adopter& by = {});

// When an allocation's agent last wrote to its outbox; 0: never.
i64 last_message_unix_ns(const std::filesystem::path& spool);

// GPU time that the allocations of a sweep have held, for messages. If no run sends heartbeats, allocations
// that were left open count until their agents' last message, as they will once they are closed.
Expected<store::GpuSeconds> gpu_seconds_held(store::Store&, i64 sweep);

// The result of an attempt that reported none.
Result abandoned(const Attempt&, Outcome, const std::string& reason);

}  // namespace sweep::run
