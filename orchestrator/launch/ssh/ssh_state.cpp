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

constexpr std::array<std::string_view, kSshStates> kSshStateNames{
    "Preparing", "Starting", "Connecting", "Serving", "CleaningUp", "Ended", "Abandoned"};
constexpr std::array<std::string_view, kSshEvents> kSshEventNames{
    "HostsReady", "HeadStarted", "Adopted", "Attached", "Stopped", "CleanedUp", "Abandoned"};

}  // namespace

std::optional<SshState> next_state(SshState state, SshEvent event) {
  return kSshTable[static_cast<std::size_t>(event)][static_cast<std::size_t>(state)];
}

std::string_view name_of(SshState state) {
  return kSshStateNames[static_cast<std::size_t>(state)];
}

std::string_view name_of(SshEvent event) {
  return kSshEventNames[static_cast<std::size_t>(event)];
}

}  // namespace sweep::launch
