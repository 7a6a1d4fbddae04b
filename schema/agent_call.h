// AgentCall: how sweep-agent is called to serve an allocation or a node of it. The one place that spells
// those words; launchers and the head agent fill it in, worker/agent/command_line.cpp reads them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schema/trial.h"

namespace sweep {

struct AgentCall {
  std::string spool, allocation, rank_program;
  i64 incarnation = 1;
  i64 slots = 1;
  i64 parent_pid = 0;  // the agent ends when this process ends; 0: none
  i64 nodes = 1;
  std::string peers;      // who starts the other nodes' agents; empty: there are none, or this is one
  std::string interface;  // empty: chosen
  std::string screen;  // nodes before the first trial: "show" or "leave_out" what stands out; empty: no look
  std::optional<double> lease_s, idle_limit_s, contact_limit_s;
  std::optional<double> time_limit_s;  // seconds until the allocation ends
  bool join = false;                   // serves one node; where to join comes by standard input
  bool detach = false;                 // says that it serves, and goes on in the background
  bool bind = false;                   // ranks of trials side by side keep to cores of their own
  bool zygote = true, pid_namespace = true;
};

inline constexpr const char* kTimeLimitOption = "--time-limit";

// The words after the program's name.
std::vector<std::string> agent_words(const AgentCall&);

}  // namespace sweep
