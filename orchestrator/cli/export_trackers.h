// `sweep export wandb` and `mlflow`: what the command line and the environment say of the tracker, and what was delivered in
// words.
#pragma once
#include <string>

#include "orchestrator/cli/command.h"

namespace sweep::cli {

struct ExportOptions {
  SweepSelector where;
  std::string format, output, columns, metric = "tokens_per_s_gpu";
  std::string uri, project, entity, experiment, offline, ca, key_file;
  double timeout_s = 60;
  bool raw_text = false, again = false;
};

int export_wandb(Io&, const ExportOptions&);
int export_wandb_offline(Io&, const ExportOptions&);
int export_mlflow(Io&, const ExportOptions&);

}  // namespace sweep::cli
