// WandbOnline: runs on a W&B server, two requests each: the run itself by GraphQL, then history, summary and
// exit as a file stream. Lines have fixed offsets, so that a repeated request writes the same lines again. A
// run that someone else has added lines to is left alone.
#pragma once
#include <string>

#include "orchestrator/export/tracker.h"

namespace sweep::exports {

struct WandbTarget {
  std::string base = "https://api.wandb.ai";
  std::string project = "sweep";
  std::string entity;  // empty: the key's default
};

class WandbOnline final : public Tracker {
 public:
  WandbOnline(WandbTarget target, RetryingClient client)
      : target_(std::move(target)), client_(std::move(client)) {}
  std::string place() const override;
  std::string digest(const TrackerRun&) const override;
  std::string digest(const TrackerSweep&) const override { return ""; }
  Delivered<void> open(const TrackerSweep&, const std::optional<Receipt>&) override { return {}; }
  Delivered<std::string> deliver(const TrackerRun&, const std::optional<Receipt>& before) override;
  Delivered<std::string> close(const TrackerSweep&) override { return ""; }

 private:
  struct Bucket {
    std::string storage_id, entity, project, name;
    i64 lines = 0;  // lines of history that the server holds
    bool inserted = true;
  };
  Delivered<nlohmann::json> graphql(const std::string& name, const std::string& query, const Json& variables);
  Delivered<Bucket> upsert(const TrackerRun&);
  Delivered<void> update_summary(const TrackerRun&, const Bucket&);
  Delivered<void> stream(const TrackerRun&, const Bucket&);
  Delivered<void> post_part(const Bucket&, const Json& part);

  WandbTarget target_;
  RetryingClient client_;
};

}  // namespace sweep::exports
