// Mlflow: runs on an MLflow server over REST: a parent run for the sweep and a child for each trial, found
// again by a tag, so that a lost answer makes no second run. MLflow answers 200 to values that it then drops,
// so what was sent is read back and compared.
#pragma once
#include <map>
#include <string>

#include "orchestrator/export/tracker.h"

namespace sweep::exports {

struct MlflowTarget {
  std::string base;
  std::string experiment = "sweep";
  std::string user;
};

class Mlflow final : public Tracker {
 public:
  Mlflow(MlflowTarget target, RetryingClient client, std::function<void(const std::string&)> note)
      : target_(std::move(target)), client_(std::move(client)), note_(std::move(note)) {}
  std::string place() const override;
  std::string digest(const TrackerRun&) const override;
  std::string digest(const TrackerSweep&) const override;
  Delivered<void> open(const TrackerSweep&, const std::optional<Receipt>&) override;
  Delivered<std::string> deliver(const TrackerRun&, const std::optional<Receipt>& before) override;
  Delivered<std::string> close(const TrackerSweep&) override;

 private:
  struct Remote {
    std::string id, artifacts;
  };
  Delivered<nlohmann::json> call(const std::string& method, const std::string& path, const Json& body,
                                 const RetryingClient::Look& look = {});
  Delivered<std::string> experiment_id();
  Delivered<std::vector<nlohmann::json>> search(const std::string& filter);
  Delivered<std::optional<Reply>> look_for(const std::string& key);
  Delivered<Remote> find_or_create(const std::string& key, const Json& body);
  Delivered<void> learn_children();
  Delivered<nlohmann::json> kept(const std::string& id);  // the data of a run
  Delivered<void> log(const TrackerRun&, const std::string& id, i64 revision, bool was_sent);
  Delivered<void> check(const TrackerRun&, const std::string& id);
  Delivered<void> put_artifact(const Remote&, const std::string& name, const std::string& bytes);
  Delivered<void> set_status(const std::string& id, const std::string& status, double ended_unix_s);
  Delivered<void> remove_doubles();

  MlflowTarget target_;
  RetryingClient client_;
  std::function<void(const std::string&)> note_;
  std::string experiment_;
  Remote parent_;
  std::map<std::string, Remote> children_;        // key: ours; the runs that the server had at the beginning
  std::map<std::string, std::string> delivered_;  // our key -> run id
  bool said_no_artifacts_ = false;
};

}  // namespace sweep::exports
