#include "orchestrator/launch/ssh/ssh_state.h"

#include <array>

namespace sweep::launch {
namespace {

using SshCell = std::optional<SshState>;

constexpr SshCell kIllegal{}, kToStarting{SshState::kStarting}, kToConnecting{SshState::kConnecting},
    kToServing{SshState::kServing}, kToCleanUp{SshState::kCleaningUp}, kToEnded{SshState::kEnded},
    kToAbandoned{SshState::kAbandoned};

// clang-format off
// The transitions by event (rows, as in SshEvent) and state (columns, as in SshState).
constexpr std::array<std::array<SshCell, kSshStates>, kSshEvents> kSshTable{{
//   Preparing      Starting       Connecting    Serving       CleaningUp    Ended         Abandoned
    {kToStarting,   kIllegal,      kIllegal,     kIllegal,     kIllegal,     kIllegal,     kIllegal},      // kHostsReady
    {kIllegal,      kToConnecting, kIllegal,     kIllegal,     kIllegal,     kIllegal,     kIllegal},      // kHeadStarted
    {kToConnecting, kIllegal,      kIllegal,     kIllegal,     kIllegal,     kIllegal,     kIllegal},      // kAdopted
    {kIllegal,      kIllegal,      kToServing,   kToServing,   kIllegal,     kIllegal,     kIllegal},      // kAttached
    {kToCleanUp,    kToCleanUp,    kToCleanUp,   kToCleanUp,   kToCleanUp,   kToEnded,     kToAbandoned},  // kStopped
    {kIllegal,      kIllegal,      kIllegal,     kIllegal,     kToEnded,     kIllegal,     kToAbandoned},  // kCleanedUp
    {kToAbandoned,  kToAbandoned,  kToAbandoned, kToAbandoned, kToAbandoned, kToAbandoned, kToAbandoned},  // kAbandoned
}};
// clang-format on

}  // namespace

std::optional<SshState> next_state(SshState state, SshEvent event) {
  return kSshTable[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
}

}  // namespace sweep::launch
