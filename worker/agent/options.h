// Options of one agent: which allocation it serves and with what. Plain values; checked by main.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

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
};

}  // namespace sweep::agent
