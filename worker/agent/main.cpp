// sweep-agent: serves an allocation, or one node of it, until it is told to finish. Started by a launcher or
// by another agent, not by hand.
#include <signal.h>

#include "worker/agent/command_line.h"

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  return sweep::agent::run_command_line(argc, argv);
}
