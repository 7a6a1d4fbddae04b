// Prints the id of a trial: proof that headers, table of fields and library of an installed sweep fit
// together.
#include <cstdio>

#include "schema/codec.h"

int main() {
  sweep::Trial trial;
  trial.seq_len = 64;
  std::puts(sweep::trial_id(trial).c_str());
}
