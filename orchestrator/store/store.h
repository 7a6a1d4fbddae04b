// Store: every result in one SQLite file. One writer per sweep, which has its lease; any number of readers.
// Migrations go forward only: an older file is upgraded after a backup, a newer one is refused.
// REQUIRES: one thread at a time. Each writing call is one transaction: after an error nothing of it was
// stored. Who needs one subject of it takes a reference to that: SweepBook&, SweepLease&, WorkQueue&,
// Reports&, Answers&.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/expected.h"
#include "base/time.h"
#include "orchestrator/store/answers.h"
#include "orchestrator/store/holder.h"
#include "orchestrator/store/profile_shelf.h"
#include "orchestrator/store/reports.h"
#include "orchestrator/store/sweep_book.h"
#include "orchestrator/store/sweep_lease.h"
#include "orchestrator/store/trial_history.h"
#include "orchestrator/store/work_queue.h"

namespace sweep::store {

enum class Mode { kReadWrite, kReadOnly };

// The outside world as the store sees it; empty members are the real thing. Tests replace them.
struct StoreDependencies {
  std::function<bool(const std::filesystem::path&)> network_filesystem;
  std::function<i64()> now_unix_ns;   // wall clock
  std::function<double()> steady_s;   // never jumps
  std::function<i64()> boot_unix_ns;  // when this machine was started, by the wall clock
  std::function<std::optional<i64>(i64 pid)>
      living_pid_start;             // start time of a living process (clock ticks after boot)
  std::optional<LeaseHolder> self;  // who takes leases
  DecideTrial decide_trial;         // needed by who stores results; empty: such calls are refused
  int busy_timeout_ms = 10000;      // twelve times as long for who holds a lease
  i64 most_unpacked = 1000;         // entries outside the packed columns; more of them are packed
  bool durable = true;  // false: a simulation's: it may be lost in a crash, and no other process opens it
  // A sentence for people where nobody waits for an error; empty: standard error.
  std::function<void(const std::string&)> warn;
  std::optional<i64> most_pages;  // limit of the file; nullopt: the disk's
};

class Store final : public SweepBook,
                    public SweepLease,
                    public WorkQueue,
                    public Reports,
                    public Answers,
                    public ProfileShelf {
 public:
  static Expected<std::unique_ptr<Store>> open(const std::filesystem::path&, Mode);
  static Expected<std::unique_ptr<Store>> open(const std::filesystem::path&, Mode, StoreDependencies);
  explicit Store(std::unique_ptr<StoreFile>);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

 private:
  std::unique_ptr<StoreFile> owned_;
};

// A database that is only read: its sweeps, oldest first. A file that is not there has no sweeps, and `store` is null.
struct SweepsOfFile {
  std::unique_ptr<Store> store;
  std::vector<SweepRow> sweeps;
};
Expected<SweepsOfFile> read_sweeps(const std::filesystem::path&);

// False on what only this machine can mount (ext4, xfs, tmpfs, ...). All others count as shared between hosts,
// known ones (NFS, Lustre, GPFS) and unknown: WAL is not safe there.
bool on_network_filesystem(const std::filesystem::path&);

}  // namespace sweep::store
