// sweep-rank: one training process. Started by an agent (run, or forked by its zygote), or by hand (check,
// dry-run).
#include <unistd.h>

#include "worker/rank/command_line.h"

int main(int argc, char** argv) {
  _exit(sweep::rank::run_command_line(
      argc, argv));  // skips the libraries' destructors, which cost more than many a trial
}
