// send: the finished trials of a sweep to W&B or MLflow, with credentials, retries and the journal; or as files that
// `wandb sync` sends later.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "orchestrator/export/deliver.h"
#include "orchestrator/export/finished_trials.h"
#include "orchestrator/export/mlflow.h"
#include "orchestrator/export/wandb_file.h"
#include "orchestrator/export/wandb_online.h"

namespace sweep::exports {

struct SendOptions {
  std::filesystem::path journal;  // the record of what was delivered
  std::filesystem::path key_file, ca;
  double timeout_s = 60;
  bool again = false;  // use the server's state instead of the journal's
};

// Is told of notes and progress while trials are sent.
struct Listener {
  std::function<void(const std::string& sentence)> note;
  std::function<void(i64 done, i64 of)> progress;
};

// The counts of a delivery, and where it went.
struct Sent {
  Deliveries done;
  std::string place;
};

Expected<Sent> send_to_wandb(const FinishedTrials&, const WandbTarget&, const SendOptions&, const Listener&);
Expected<Sent> send_to_mlflow(const FinishedTrials&, const MlflowTarget&, const SendOptions&,
                              const Listener&);
// Ctrl-C stops it between two trials.
Deliveries write_offline(const FinishedTrials&, const WandbOffline&, const Listener&);

// "PLACE: 3 of 4 finished trials are there (2 sent, 1 updated, 0 unchanged)", and how many are not exported.
std::string sent_line(const Sent&, const FinishedTrials&);

}  // namespace sweep::exports
