// The mark by which every process of an attempt is found again: an environment variable that survives fork,
// exec, a new session and a new process group.
//
//   SWEEP_ATTEMPT=<key>/<attempt id, 20 digits>
//
// The key is the allocation and a hash of its spool, so that two databases on one machine never touch each
// other's processes.
//
// The launcher marks the agent and the agent marks its zygote with attempt 0. The id has a fixed width so
// that a rank forked by the zygote rewrites it in place: /proc/PID/environ shows the bytes the process was
// started with.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "schema/trial.h"

namespace sweep {

inline constexpr const char* kAttemptVariable = "SWEEP_ATTEMPT";

// "<allocation>-<16 hex digits>", safe as a file name.
std::string allocation_key(std::string_view allocation, const std::filesystem::path& spool);
// The key of one node's part: two nodes of an allocation may be one machine. Node 0: the key itself.
std::string node_key(std::string_view key, i64 node);
std::string attempt_token(std::string_view key, i64 attempt);
// A rank of the zygote calls this right after its last fork. Without a mark in the environment it does
// nothing.
void mark_this_process(i64 attempt);

struct MarkedProcess {
  pid_t pid = 0;  // its number as the caller sees it
  i64 attempt = 0;
  char state = '?';  // state in /proc/PID/stat; zombies are never listed
  std::string command;
};
// Every live process of this key that the caller may see and signal, itself left out. all_nodes: of every
// node_key() of it too.
std::vector<MarkedProcess> marked_processes(std::string_view key, bool all_nodes = false);
// Ends them with SIGKILL until none is found, at most `rounds` times 10 ms (a process in uninterruptible
// sleep is not waited for any longer), and removes rendezvous folders of any incarnation. How many it ended.
i64 end_marked_processes(std::string_view key, bool all_nodes, int rounds = 100);
// Ends what a dead allocation may have left on this machine: its agent, ranks and rendezvous folders. Called before
// an allocation of the same spool is started again and when one was lost. How many processes it ended. REQUIRES: no
// live agent serves this allocation; it would be ended.
inline i64 kill_orphans(const std::filesystem::path& spool, std::string_view allocation) {
  return end_marked_processes(allocation_key(allocation, spool), true);
}

// /dev/shm/sweep-<uid>/<key>-<incarnation>: rendezvous folders of an allocation's attempts.
std::filesystem::path rendezvous_root(std::string_view key, i64 incarnation);
std::filesystem::path rendezvous_home();  // /dev/shm/sweep-<uid>

}  // namespace sweep
