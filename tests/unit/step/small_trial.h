// The trial of a few thousand parameters that tests of the step begin with.
#pragma once
#include "schema/trial.h"

namespace sweep::step {

inline Trial small_trial() {
  Trial t;
  t.spec.layers = 2, t.spec.hidden_size = 64, t.spec.heads = 4, t.spec.kv_heads = 2, t.spec.head_dim = 16;
  t.spec.intermediate_size = 96, t.spec.vocab_size = 97;
  t.seq_len = 32, t.micro_batch_size = 4, t.global_batch_size = 4;
  return t;
}

}  // namespace sweep::step
