// Options of one agent: which allocation it serves and with what. Plain values; checked by main.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/attempt_token.h"
#include "schema/trial.h"

namespace sweep::agent {

// Who starts the agents of the other nodes.
enum class Peers {
  // There are none.
  kNone,
  // This agent, with srun.
  kSlurm,
  kLauncher,
};
// The treatment of nodes that are slower than the others before the first attempt.
enum class Screen {
  // The nodes are not measured.
  kNone,
  // Their records say it.
  kShow,
  // They get no work besides.
  kLeaveOut,
};

struct Options {
  // Absolute.
  std::filesystem::path spool;
  std::string allocation;
  i64 incarnation = 1;
  // Ranks that may run at once on a node; one attempt alone may exceed it.
  i64 slots = 1;
  // Absolute; empty: every trial runs a command.
  std::filesystem::path rank_program;
  // The orchestrator: the agent ends when it does; 0: it is not watched.
  pid_t parent_pid = 0;
  // Seconds without work and without an inbox line after which the agent leaves; 0: never.
  double idle_limit_s = 0;
  bool zygote = true;
  // Ranks run in a PID namespace if the system allows it.
  bool pid_namespace = true;

  // Nodes of the allocation; if more than one, this is its head agent.
  i64 nodes = 1;
  // The number of this node; 0: the head agent's.
  i64 node = 0;
  Peers peers = Peers::kNone;
  // A network interface's name or address; empty: chosen (net/interface.h).
  std::string interface;
  // Each slot has cores of its own.
  bool bind = false;
  Screen screen = Screen::kNone;
  // Seconds of silence after which two agents take each other for lost.
  double lease_s = 15;
  // Seconds without an orchestrator after which the agent ends everything; 0: no limit.
  double contact_limit_s = 0;
  // Seconds from the agent's start until the allocation ends; nullopt: it does not end.
  std::optional<double> time_limit_s;
  // One line of JSON is written there once the agent serves; -1: nowhere.
  int ready_fd = -1;

  // Seconds without a beat of the agent's event loop after which the outer process ends it. The head agent
  // has taken a node agent for lost by then; a head agent may wait for a slow file system, and no other
  // reports its attempts.
  double stall_limit_s() const { return node > 0 ? lease_s : std::max(60.0, 4 * lease_s); }
  // The mark of this node's processes (runtime/attempt_token.h).
  std::string key() const { return node_key(allocation_key(allocation, spool), node); }
};

}  // namespace sweep::agent
