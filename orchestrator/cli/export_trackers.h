// Exports to experiment trackers: the sweep's finished trials with their histories, read one at a time from
// the store and given to W&B or MLflow.
#pragma once
#include <string>

#include "orchestrator/cli/command.h"
#include "orchestrator/export/benchmark_json.h"

namespace sweep::cli {

struct ExportOptions {
  SweepSelector where;
  std::string format, output, columns, metric = "tokens_per_s_gpu";
  std::string uri, project, entity, experiment, offline, ca, key_file;
  double timeout_s = 60;
  bool raw_text = false, again = false;
};

// Rows with what people call them: the sweep's varying axes in short.
std::vector<exports::NamedRow> named_rows(const std::vector<ResultRow>&, bool with_sweep);

int export_wandb(Io&, const ExportOptions&);
int export_wandb_offline(Io&, const ExportOptions&);
int export_mlflow(Io&, const ExportOptions&);

}  // namespace sweep::cli
