// The states of an allocation over ssh, and the events that move it from one to the next. Pure.
// The transitions are a table in ssh_state.cpp; the allocation never raises an event that is kIllegal there.
#pragma once
#include <optional>

namespace sweep::launch {

enum class SshState {
  kPreparing,   // folders are made on its hosts, the agent is copied and probed
  kStarting,    // the head agent is started
  kConnecting,  // agents run, or did; the first connection to their mailbox is made
  kServing,     // was connected once: Started was told
  kCleaningUp,  // processes are ended on its hosts, logs brought here, folders removed
  kEnded,       // Ended was told; its hosts are free
  kAbandoned,   // reports nothing any more; its agents live on
};
inline constexpr int kSshStates = 7;

enum class SshEvent {
  kHostsReady,   // every host can run trials
  kHeadStarted,  // the head agent serves
  kAdopted,      // an earlier process started its agents
  kAttached,     // connected to its mailbox, for the first time or again
  kStopped,      // its end is decided: last message, loss, or order
  kCleanedUp,    // nothing is left on its hosts, or that could not be reached
  kAbandoned,    // its launcher goes, or another process runs the sweep
};
inline constexpr int kSshEvents = 7;

// The state after the event. nullopt: the pair is illegal.
std::optional<SshState> next_state(SshState, SshEvent);

// Its end was reported, or is never reported.
constexpr bool has_ended(SshState state) {
  return state == SshState::kEnded || state == SshState::kAbandoned;
}
// Its end is decided: answers that belong to its start or its service are ignored.
constexpr bool is_over(SshState state) {
  return state == SshState::kCleaningUp || has_ended(state);
}

}  // namespace sweep::launch
