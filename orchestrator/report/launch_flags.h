// Launch form: a configuration as another trainer takes it: flags of torchtitan and Megatron-LM, a config of nanotron,
// a DeepSpeed JSON. What that trainer cannot be told is named, never dropped in silence. docs/report.md has the versions.
#pragma once
#include <string>
#include <vector>

#include "schema/result_row.h"

namespace sweep::report {

struct LaunchForm {
  std::string tool;                   // torchtitan, Megatron-LM, nanotron, DeepSpeed
  std::string text;                   // ready to paste
  std::vector<std::string> not_said;  // sentences: what this form leaves open or cannot express
};

std::vector<LaunchForm> launch_forms(const ResultRow&);

}  // namespace sweep::report
