// Bridge: the far end of an orchestrator's connection to an allocation whose spool it does not share. It
// appends the orchestrator's inbox bytes to the inbox here and sends the outbox bytes there, each by its
// offset, so that a connection that was cut is taken up again where it broke. It owns nothing: ending it ends
// no agent.
//
//   to the bridge    {"attach": outbox offset wanted from on}   {"inbox": offset} + bytes   {"beat": n}
//   from the bridge  {"attached": size of the inbox, "agent": whether it lives}   {"inbox_at": size}
//                    {"outbox": offset} + bytes   {"beat": n}   {"gone": true}: the agent ended, all was sent
#pragma once
#include <filesystem>

namespace sweep::agent {

// Runs until `in` ends; returns the exit code.
int run_bridge(const std::filesystem::path& spool, int in, int out);

}  // namespace sweep::agent
