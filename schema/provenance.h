// Provenance: where and with what a result was measured, as the machines reported it; absent parts were not
// told.
#pragma once
#include <string>
#include <vector>

#include "schema/records.h"

namespace sweep {

// One node of one allocation.
struct Environment {
  std::string allocation, launcher, whereabouts;
  i64 node = 0;
  std::string host;
  NodeFacts facts;
  i64 created_unix_ns = 0;
  i64 results = 0;  // trials of the sweep whose final attempt ran in this allocation
};

// The provenance of one trial's final attempt.
struct Provenance {
  std::string trial_id;
  std::string launcher;            // local, ssh, slurm, import, ...
  std::vector<Environment> nodes;  // nodes of its allocation
  EffectiveSettings effective;     // of rank 0
};

}  // namespace sweep
