// The offline form of a run: a .wandb file in a folder that `wandb sync` takes. Records are protobuf messages
// in LevelDB's log framing; only the fields a run needs are written, so that no protobuf library is.
#pragma once
#include <filesystem>
#include <string>

#include "orchestrator/export/tracker.h"

namespace sweep::exports {

// The file's bytes; the same run gives the same bytes.
std::string wandb_file(const TrackerRun&, const std::string& entity, const std::string& project);

// WandbOffline: DIR/offline-run-<UTC time>-<id>/run-<id>.wandb for each run. A file that `wandb sync` has
// sent already is never rewritten: it would be sent twice.
class WandbOffline {
 public:
  WandbOffline(std::filesystem::path dir, std::string entity, std::string project)
      : dir_(std::move(dir)), entity_(std::move(entity)), project_(std::move(project)) {}
  enum class Written { kNew, kUnchanged, kReplaced };
  Expected<Written> write(const TrackerRun&) const;

 private:
  std::filesystem::path dir_;
  std::string entity_, project_;
};

}  // namespace sweep::exports
