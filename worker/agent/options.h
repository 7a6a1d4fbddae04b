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

struct Options {
  std::filesystem::path spool;  // absolute
  std::string allocation;
  i64 incarnation = 1;
  i64 slots = 1;                       // ranks that may run at once; one attempt alone may exceed it
  std::filesystem::path rank_program;  // absolute
  pid_t parent_pid = 0;                // the orchestrator to die with; 0: none
  double idle_limit_s = 0;  // without work and without word for so long it ends by itself; 0: never
  bool zygote = true;
  bool pid_namespace = true;  // where the system allows it

  i64 nodes = 1;          // of the allocation; more than one: this is its head agent
  i64 node = 0;           // which of them this is; 0: the head agent
  std::string peers;      // who starts the node agents: "slurm": we do, with srun; "launcher": the launcher
  std::string interface;  // its name or an address; empty: chosen (interface.h)
  bool bind = false;      // each slot has cores of its own
  std::string screen;  // before the first attempt: "show" or "leave_out" nodes that stand out; empty: no look
  double lease_s = 15;         // silence between agents after which each side gives the other up
  double contact_limit_s = 0;  // silence of the orchestrator after which the agent ends itself; 0: no limit
  std::optional<double>
      time_limit_s;   // seconds from its start until the allocation ends; absent: it does not
  int ready_fd = -1;  // one line of JSON is written there once the agent serves; -1: nowhere

  // Without a beat of the agent's event loop for so long it is ended. A node agent has been given up by the head
  // then; a head agent may wait for a slow file system, and nobody else tells of its attempts.
  double stall_limit_s() const { return node > 0 ? lease_s : std::max(60.0, 4 * lease_s); }
  // The mark of this node's processes (schema/attempt_token.h).
  std::string key() const { return node_key(allocation_key(allocation, spool), node); }
};

}  // namespace sweep::agent
