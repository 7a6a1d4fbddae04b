// AttemptFiles: the folder of one attempt in the spool, with the files of this node's ranks in it, and its
// rendezvous folder in memory. It makes them before ranks start, maps the heartbeat pages, reads the records,
// and removes the rendezvous folder when it is destroyed.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/expected.h"
#include "schema/node_part.h"
#include "schema/progress.h"
#include "schema/records.h"
#include "worker/agent/evidence/watchdog.h"

namespace sweep::agent {

// Error (kNotFound): the working folder that the attempt's command names is not on this host.
Expected<void> find_working_folder(const Attempt&);

class AttemptFiles {
 public:
  // rendezvous_root is made with mode 0700; where /dev/shm does not serve, the spool does.
  static Expected<AttemptFiles> make(const std::filesystem::path& spool,
                                     const std::filesystem::path& rendezvous_root, const NodePart& part);
  AttemptFiles(AttemptFiles&&) noexcept = default;
  AttemptFiles& operator=(AttemptFiles&&) noexcept = default;
  ~AttemptFiles();

  const std::filesystem::path& dir() const { return dir_; }
  const std::filesystem::path& attempt_file() const { return attempt_file_; }
  const std::filesystem::path& rendezvous() const { return rendezvous_; }
  // REQUIRES: an index of this node's ranks, counted from 0.
  Heartbeat heartbeat(i64 index) const;
  // The rank's record, checked to be of that rank; none: it wrote none. Damage is an error.
  Expected<std::optional<RankRecord>> record(i64 rank) const;
  void remove_rendezvous();

 private:
  AttemptFiles() = default;
  struct Unmap {
    void operator()(ProgressPage* page) const;
  };
  i64 id_ = 0;
  std::filesystem::path dir_, attempt_file_, rendezvous_;
  std::vector<std::unique_ptr<ProgressPage, Unmap>> pages_;
};

}  // namespace sweep::agent
