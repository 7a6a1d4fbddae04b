// RunContext: what every part of the run loop works with. It owns nothing.
#pragma once
#include <optional>
#include <string>

#include "base/expected.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/run/observer.h"
#include "orchestrator/run/run_sweep.h"
#include "orchestrator/store/store.h"

namespace sweep::run {

struct RunContext {
  store::Store& store;
  const Settings& settings;
  Observer& observer;
  launch::Launcher& launcher;

  Clock::Point now() const { return settings.clock->now(); }
  // Tells people, and keeps it as an event of the sweep.
  Expected<void> note(EventKind kind, const std::string& text, std::optional<i64> attempt = {}) const {
    observer.on_note(text);
    observer.on_event(kind, text);
    return store.add_event(settings.sweep, kind, text, attempt);
  }
};

}  // namespace sweep::run
